#!/bin/sh
# SPDX-License-Identifier: MIT
# What takes the longest in the machine, done here at this machine's speed: the
# packages that the documentation says to install, and a build in /root/inline.
# The steps then find little to do.
#
#	ahead.sh DEBIAN BUNDLE FOLDER
#
# DEBIAN is a folder of root.sh's, BUNDLE a git bundle with a branch check-host.
# Leaves base.img, vmlinuz and initrd in FOLDER; the packages are kept in DEBIAN
# for the next time.
set -eu

debian=$1 bundle=$2 folder=$3
root=$folder/root

# In the root, with /proc and /dev, which are gone with the last process there.
inside() {
	# shellcheck disable=SC2016 # for the other shell
	unshare --mount --fork sh -c 'root=$1 && shift &&
		mount -t proc proc "$root/proc" &&
		mount --bind /dev "$root/dev" && exec chroot "$root" "$@"' \
		sh "$root" env DEBIAN_FRONTEND=noninteractive sh -eu -c "$1" \
		>>"$folder/ahead.log" 2>&1
}

unpack() {
	rm -rf "$root"
	mkdir -p "$root"
	tar -x -p -C "$root" -f "$1"
	cp "$bundle" "$root/root/bundle"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
}

clone='cd /root && rm -rf inline && git clone -q -b check-host bundle inline
	cd inline && sandbox/setup/deps.sh build run'
if [ ! -e "$debian/ahead.tar" ]; then
	unpack "$debian/root.tar"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	inside "apt-get -q -q install -y make sqlite3 nginx certbot; $clone"
	rm "$root/usr/sbin/policy-rc.d"
	tar -c -C "$root" -f "$debian/ahead.tar.new" .
	mv "$debian/ahead.tar.new" "$debian/ahead.tar"
else
	unpack "$debian/ahead.tar"
fi
inside "$clone && make -s -j2"
rm "$root/root/bundle"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
cp "$debian/vmlinuz" "$debian/initrd" "$folder/"
truncate -s 14G "$folder/base.img.new"
mke2fs -q -t ext4 -d "$root" -F "$folder/base.img.new"
rm -rf "$root"
mv "$folder/base.img.new" "$folder/base.img"
