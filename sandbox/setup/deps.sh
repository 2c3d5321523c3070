#!/bin/sh
# SPDX-License-Identifier: MIT
# Install what is missing for the tiers that are named:
#
#	deps.sh build|run|image|wheels|musl|test|package|container|nodes|host|lint ...
#
# What is there is found by using it (a command, a pkg-config module, a Python
# module), not by asking a package manager: an engine or a compiler from
# elsewhere is as good.  With all there, this takes a few milliseconds and
# touches nothing.  Where there is no apt, the missing packages are printed by
# name and the status is 1.
set -eu

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# tier   what is looked for     Debian                 Fedora            Arch
table() {
	cat <<-'END'
	build  cmd:gcc              gcc                    gcc               gcc
	build  file:stdio.h         libc6-dev              glibc-devel       glibc
	build  cmd:pkg-config       pkg-config             pkgconf-pkg-config pkgconf
	build  pc:fcgi              libfcgi-dev            fcgi-devel        fcgi
	build  pc:libsodium         libsodium-dev          libsodium-devel   libsodium
	build  pc:jansson           libjansson-dev         jansson-devel     jansson
	build  pc:libcurl           libcurl4-openssl-dev   libcurl-devel     curl
	build  pc:sqlite3           libsqlite3-dev         sqlite-devel      sqlite
	build  cmd:msgfmt           gettext                gettext           gettext
	build  cmd:prove            perl                   perl-Test-Harness perl
	build  cmd:python3          python3                python3           python
	run    cmd:nginx            nginx                  nginx             nginx
	run    docker               docker.io              moby-engine       docker
	run    dockercli            docker-cli             docker-cli        docker
	run    cmd:mkfs.ext4        e2fsprogs              e2fsprogs         e2fsprogs
	run    cmd:flock            util-linux             util-linux        util-linux
	run    file:ca              ca-certificates        ca-certificates   ca-certificates
	image  cmd:mmdebstrap       mmdebstrap             mmdebstrap        mmdebstrap
	image  cmd:gpgv             gpgv                   gnupg2            gnupg
	image  file:keyring         debian-archive-keyring debian-keyring    debian-archive-keyring
	wheels py:pip              python3-pip            python3-pip       python-pip
	musl   cmd:musl-gcc         musl-tools             musl-gcc          musl
	musl   busybox              busybox-static         busybox           busybox
	musl   cmd:tclsh            tcl                    tcl               tcl
	musl   cmd:perl             perl                   perl              perl
	musl   cmd:xz               xz-utils               xz                xz
	musl   file:zoneinfo        tzdata                 tzdata            tzdata
	musl   file:ca              ca-certificates        ca-certificates   ca-certificates
	musl   file:keyring         debian-archive-keyring debian-keyring    debian-archive-keyring
	test   py:jsonschema        python3-jsonschema     python3-jsonschema python-jsonschema
	test   cmd:sqlite3          sqlite3                sqlite            sqlite
	test   cmd:chromium         chromium               chromium          chromium
	test   cmd:ps               procps                 procps-ng         procps-ng
	test   cmd:curl             curl                   curl              curl
	test   cmd:openssl          openssl                openssl           openssl
	test   cmd:git              git                    git               git
	test   cmd:promtool         prometheus             golang-github-prometheus prometheus
	package cmd:dh              debhelper              debhelper         -
	package cmd:lintian         lintian                -                 -
	package cmd:dpkg-buildpackage dpkg-dev             dpkg-dev          dpkg
	package cmd:apt-ftparchive  apt-utils              -                 -
	package cmd:gpg             gnupg                  gnupg2            gnupg
	package cmd:systemd-sysusers systemd               systemd           systemd
	container cmd:openssl       openssl                openssl           openssl
	container cmd:curl          curl                   curl              curl
	container compose           docker-compose         docker-compose    docker-compose
	nodes  cmd:docker-registry  docker-registry        docker-distribution docker-registry
	nodes  cmd:nsenter          util-linux             util-linux        util-linux
	nodes  cmd:ip               iproute2               iproute           iproute2
	nodes  cmd:debugfs          e2fsprogs              e2fsprogs         e2fsprogs
	nodes  cmd:ps               procps                 procps-ng         procps-ng
	nodes  cmd:curl             curl                   curl              curl
	nodes  file:faketime        libfaketime            libfaketime       libfaketime
	host   cmd:qemu-system-x86_64 qemu-system-x86   qemu-system-x86   qemu-system-x86
	host   cmd:qemu-img         qemu-utils             qemu-img          qemu-img
	host   cmd:mmdebstrap       mmdebstrap             mmdebstrap        mmdebstrap
	host   cmd:gpgv             gpgv                   gnupg2            gnupg
	host   file:keyring         debian-archive-keyring debian-keyring    debian-archive-keyring
	host   cmd:mkfs.ext4        e2fsprogs              e2fsprogs         e2fsprogs
	host   cmd:ssh              openssh-client         openssh-clients   openssh
	host   cmd:openssl          openssl                openssl           openssl
	host   cmd:git              git                    git               git
	host   so:libsodium         libsodium23            libsodium         libsodium
	lint   cmd:clang            clang                  clang             clang
	lint   file:fuzzer          libclang-rt-14-dev     compiler-rt       compiler-rt
	lint   cmd:clang-format     clang-format           clang-tools-extra clang
	lint   cmd:clang-tidy       clang-tidy             clang-tools-extra clang
	lint   cmd:cppcheck         cppcheck               cppcheck          cppcheck
	lint   cmd:shellcheck       shellcheck             ShellCheck        shellcheck
	lint   cmd:mandoc           mandoc                 mandoc            mandoc
	lint   cmd:pmccabe          pmccabe                pmccabe           pmccabe
	lint   cmd:sqlite3          sqlite3                sqlite            sqlite
	lint   cmd:nginx            nginx                  nginx             nginx
	lint   cmd:openssl          openssl                openssl           openssl
	lint   cmd:systemd-analyze  systemd                systemd           systemd
	lint   cmd:valgrind         valgrind               valgrind          valgrind
	lint   cmd:gcovr            gcovr                  gcovr             gcovr
	END
}

# any PATH...: one of them exists.
any() {
	for path; do
		[ ! -e "$path" ] || return 0
	done
	return 1
}

# present WHAT: it can be used.
present() {
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null ;;
	pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
	py:*) /usr/bin/python3 -c "import ${1#py:}" 2>/dev/null ;;
	file:stdio.h) [ -e /usr/include/stdio.h ] ;;
	file:ca) any /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/cert.pem \
		/etc/ssl/cert.pem ;;
	file:faketime) any /usr/lib/*/faketime/libfaketime.so.1 \
		/usr/lib*/faketime/libfaketime.so.1 ;;
	file:zoneinfo) [ -e /usr/share/zoneinfo/UTC ] ;;
	# One that needs no library: it is copied into images without any.
	busybox) command -v busybox >/dev/null &&
		! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
	file:keyring)
		[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ;;
	so:*) /usr/bin/python3 -c "from ctypes.util import find_library
raise SystemExit(find_library('${1#so:lib}') is None)" 2>/dev/null ;;
	file:fuzzer) any /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-* \
		/usr/lib*/clang/*/lib/*/libclang_rt.fuzzer* ;;
	# The engine: a daemon here, or a client that reaches one elsewhere.
	docker) command -v dockerd >/dev/null ||
		"${DOCKER_BINARY:-docker}" version >/dev/null 2>&1 ;;
	compose) command -v docker-compose >/dev/null ||
		"${DOCKER_BINARY:-docker}" compose version >/dev/null 2>&1 ;;
	# Debian 12 has the client in docker.io, later releases beside it.
	dockercli) command -v "${DOCKER_BINARY:-docker}" >/dev/null ||
		{ ! known docker-cli && missing_has docker.io; } ;;
	esac
}

# known PACKAGE: apt could install it.
known() {
	command -v apt-cache >/dev/null &&
		apt-cache show --no-all-versions "$1" >/dev/null 2>&1
}

missing_has() {
	case " $missing " in *" $1 "*) return 0 ;; esac
	return 1
}

# find_missing COLUMN TIER...: set $missing to package names of that column.
find_missing() {
	column=$1
	shift
	missing=
	while read -r tier what names; do
		case " $* " in *" $tier "*) ;; *) continue ;; esac
		# shellcheck disable=SC2086 # split into the columns
		set_name $names
		# What another distribution does not have, it can do without.
		[ "$name" = - ] || missing_has "$name" || present "$what" ||
			missing="$missing $name"
	done <<-END
	$(table)
	END
	missing=${missing# }
}

set_name() {
	shift $((column - 1))
	name=$1
}

# As root, directly or by sudo.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "deps: run this as root: $*" >&2
		return 1
	fi
}

# No package starts a service while we install, by Debian's own policy file:
# nginx would open port 80, which nobody asked for, and whether the engine can be
# started is not for dpkg to fail on; engine.sh does that.
hold_services() {
	policy=/usr/sbin/policy-rc.d
	if [ "$(id -u)" = 0 ] && [ ! -e $policy ]; then
		trap 'rm -f $policy' EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
	fi
}

apt_install() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	as_root apt-get -q -o Acquire::Retries=3 update </dev/null >&2 ||
		echo "deps: apt-get update failed; trying with the old lists" >&2
	find_missing 1 "$@" # the lists may know more names now
	echo "deps: installing $missing" >&2
	hold_services
	# shellcheck disable=SC2086 # a list of names
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
		--no-install-recommends -o DPkg::Lock::Timeout=300 \
		-o Acquire::Retries=3 \
		$missing </dev/null >&2
	find_missing 1 "$@"
	if [ -n "$missing" ]; then
		echo "deps: still missing after installation: $missing" >&2
		return 1
	fi
}

main() {
	for tier; do
		case $tier in
		build | run | image | wheels | musl | test | package | container | nodes | host | lint) ;;
		*)
			echo "usage: deps.sh build|run|image|wheels|musl|test|package|container|nodes|host|lint ..." >&2
			exit 64
			;;
		esac
	done
	find_missing 1 "$@"
	[ -n "$missing" ] || return 0
	if command -v apt-get >/dev/null; then
		apt_install "$@"
		return
	fi
	if command -v dnf >/dev/null; then
		find_missing 2 "$@"
		echo "deps: missing (Fedora's names): dnf install $missing" >&2
	elif command -v pacman >/dev/null; then
		find_missing 3 "$@"
		echo "deps: missing (Arch's names): pacman -S $missing" >&2
	else
		echo "deps: missing (Debian's names): $missing" >&2
	fi
	return 1
}

main "$@"
