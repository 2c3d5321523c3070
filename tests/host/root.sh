#!/bin/sh
# SPDX-License-Identifier: MIT
# The disk of a virtual machine: a small Debian as an administrator would get
# it, with systemd, AppArmor, Debian's kernel and an SSH server, and without
# anything that Inline's documentation says to install.
#
#	root.sh SUITE KEY CA FOLDER
#
# SUITE is bookworm or trixie, KEY a public SSH key that root may be reached
# with, CA a certificate that is trusted.  Leaves base.img, vmlinuz and initrd in
# FOLDER, and the files as root.tar.  Needs root, for a chroot.
set -eu

suite=$1 key=$2 ca=$3 folder=$4
packages=systemd-sysv,systemd-timesyncd,libpam-systemd,dbus,udev,kmod
packages=$packages,linux-image-cloud-amd64,initramfs-tools,apparmor
packages=$packages,openssh-server,ifupdown,iproute2
packages=$packages,ca-certificates,openssl,curl,git,python3,procps,psmisc
packages=$packages,less,cron,logrotate

# The host's own mirrors, with this suite's name in the place of the host's.
sources() {
	# shellcheck disable=SC2016 # names for apt
	apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
		--format '$(SITE) $(CODENAME)' |
		while read -r site codename; do
			case $codename in
			*-backports*) continue ;;
			*-*) echo "deb $site $suite-${codename#*-} main" ;;
			*) echo "deb $site $suite main" ;;
			esac
		done | sort -u
}

# As the host's apt reaches its mirrors.
apt_settings() {
	apt-config dump --format '%F "%v";%n' |
		grep -E '^Acquire::(http|https|Check|Retries|ForceIP)' || :
}

root=$folder/root
rm -rf "$root" "$folder/base.img"
mkdir -p "$folder"
sources >"$folder/sources.list"
apt_settings >"$folder/apt.conf"
mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
	--aptopt="$folder/apt.conf" "$suite" "$root" "$folder/sources.list"

cp "$folder/apt.conf" "$root/etc/apt/apt.conf.d/99host"
echo inline-host >"$root/etc/hostname"
cat >"$root/etc/hosts" <<-'END2'
	127.0.0.1 localhost
	127.0.1.1 inline-host
	127.0.0.1 inline.host.test
END2
echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
# The addresses of QEMU's user network.
cat >"$root/etc/network/interfaces" <<-'END2'
	auto lo
	iface lo inet loopback
	auto eth0
	iface eth0 inet static
		address 10.0.2.15/24
		gateway 10.0.2.2
END2
for timer in apt-daily apt-daily-upgrade; do # minutes of CPU time, in there
	ln -sf /dev/null "$root/etc/systemd/system/$timer.timer"
done
install -d -m 700 "$root/root/.ssh"
install -m 600 "$key" "$root/root/.ssh/authorized_keys"
install -D -m 644 "$ca" "$root/usr/local/share/ca-certificates/check-host.crt"
# Here rather than in the machine, where each of them takes minutes: the
# certificates, and apt's lists.
chroot "$root" update-ca-certificates >/dev/null
chroot "$root" apt-get -q -q update
rm -f "$root/etc/resolv.conf"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
cp "$root"/boot/vmlinuz-* "$folder/vmlinuz"
cp "$root"/boot/initrd.img-* "$folder/initrd"
truncate -s 14G "$folder/base.img.new"
mke2fs -q -t ext4 -d "$root" "$folder/base.img.new"
tar -c -C "$root" -f "$folder/root.tar" .
rm -rf "$root"
mv "$folder/base.img.new" "$folder/base.img"
