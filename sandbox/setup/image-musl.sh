#!/bin/sh
# SPDX-License-Identifier: MIT
# Make the root of an image with a Python on musl, like python:X.Y-alpine, from
# Debian's sources, for the tests that no cell stands on glibc:
#
#	image-musl.sh VERSION SCRATCH
#
# SCRATCH/sources.list says where the packages of the suite come from, and
# SCRATCH/image.tar is what is made; image-make.sh calls this.
#
# Like the official image: a shared libpython in /usr/local, threads with 1 MiB
# of stack, busybox for a shell, no bash, no byte code, a root that is written
# to nowhere.  Unlike it: the libraries are linked into Python's modules, and
# curses, readline, lzma and bz2 are left out.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

version=$1
scratch=$(realpath "$2")
root=$scratch/root
prefix=$scratch/static
machine=$(uname -m)
jobs=${JOBS:-$(nproc)}
# Of the caller's make, too: it knows no suffix rules (-r), Python's lives by them.
unset PYTHONPATH PYTHONHOME CPPFLAGS CFLAGS LDFLAGS MAKEFLAGS MFLAGS MAKELEVEL

# step WHAT COMMAND...: with its output in a log, of which the end is shown when
# it fails.
step() {
	say "$1"
	shift
	"$@" >"$scratch/log" 2>&1 & # here set -e holds, left of || it would not
	wait $! || {
		tail -n 30 "$scratch/log" >&2
		die "failed: $*"
	}
}

# apt-get with lists and settings of its own: the machine's stay as they are.
private_apt() {
	apt-get -q -q -o APT::Sandbox::User=root -o APT::Default-Release= \
		-o Dir::Etc::SourceList="$scratch/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$scratch/apt/lists" \
		-o Dir::Cache="$scratch/apt" "$@"
}

# The release as it came out: not each mirror has the sources of its updates, and
# only tests run in this image.  Debian's signature is checked by apt; its
# patches are for Debian's system.
fetch() {
	[ -s "$scratch/sources.list" ] || die "no sources: apt knows no Debian"
	mkdir -p "$scratch/apt/lists/partial" "$scratch/apt/archives/partial"
	sed -i -e '/^deb [^ ]* [^ ]*-/d' -e 's/^deb /deb-src /' \
		-e 's| | [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] |' \
		"$scratch/sources.list"
	private_apt update
	for package; do
		mkdir -p "$scratch/fetched/$package" "$scratch/$package"
		(cd "$scratch/fetched/$package" &&
			private_apt source --download-only "$package")
		tar -xf "$(find "$scratch/fetched/$package" \
			-name '*.orig.tar.*' ! -name '*.asc')" \
			-C "$scratch/$package" --strip-components=1
	done
}

# musl-gcc knows none of the kernel's headers, and says that it compiles for
# glibc, in whose headers Python would look for what there is.
make_compiler() {
	mkdir "$scratch/kernel"
	ln -s /usr/include/linux /usr/include/asm-generic \
		"/usr/include/$(gcc -print-multiarch)/asm" "$scratch/kernel"
	cat >"$scratch/cc" <<-END
		#!/bin/sh
		case "\$*" in
		*-print-multiarch) echo $machine-linux-musl ;;
		*) exec musl-gcc "\$@" -idirafter $scratch/kernel ;;
		esac
	END
	chmod +x "$scratch/cc"
	export CC="$scratch/cc"
}

zlib() {
	cd "$scratch/zlib"
	CFLAGS='-O2 -fPIC' ./configure --static --prefix="$prefix"
	make -j"$jobs" libz.a
	make install
}

libffi() {
	cd "$scratch/libffi"
	./configure --build="$machine-linux-musl" --prefix="$prefix" \
		--libdir="$prefix/lib" --disable-multi-os-directory \
		--disable-shared --with-pic --disable-docs
	make -j"$jobs" install
}

openssl() {
	cd "$scratch/openssl"
	./Configure "linux-$machine" --prefix="$prefix" --libdir=lib \
		--openssldir=/etc/ssl -fPIC no-shared no-module no-dso no-engine \
		no-async no-tests
	make -j"$jobs" build_sw
	make install_dev
}

sqlite() {
	cd "$scratch/sqlite3"
	./configure --build="$machine-linux-musl" --prefix="$prefix" \
		--disable-tcl --disable-shared --disable-readline \
		CFLAGS='-O2 -fPIC -DSQLITE_ENABLE_FTS5'
	make -j"$jobs" sqlite3.c libsqlite3.la
	cp sqlite3.h "$prefix/include"
	cp .libs/libsqlite3.a "$prefix/lib"
}

# The stack: musl's own 128 KiB are too little for Python's recursion.
python() {
	cd "$scratch/python$version"
	./configure --build="$machine-linux-musl" --prefix=/usr/local \
		--enable-shared --with-openssl="$prefix" \
		CFLAGS='-O2 -w' CPPFLAGS="-I$prefix/include" \
		LDFLAGS="-L$prefix/lib -Wl,--strip-all" \
		LIBFFI_CFLAGS="-I$prefix/include" \
		LIBFFI_LIBS="-L$prefix/lib -lffi" \
		LIBSQLITE3_CFLAGS="-I$prefix/include" \
		LIBSQLITE3_LIBS="-L$prefix/lib -lsqlite3" \
		PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
	make -j"$jobs" EXTRA_CFLAGS=-DTHREAD_STACK_SIZE=0x100000
	make install DESTDIR="$root" ENSUREPIP=no
}

# What is not Python: musl, busybox, and the files that programs look for.
furnish() {
	cd "$root"
	mkdir -p bin dev etc/ssl/certs home lib proc root run sbin sys tmp \
		usr/bin usr/sbin usr/share var/tmp
	chmod 1777 tmp var/tmp
	cp -L "/lib/ld-musl-$machine.so.1" lib
	ln -s "ld-musl-$machine.so.1" "lib/libc.musl-$machine.so.1"
	cp "$(command -v busybox)" bin/busybox
	for applet in $(bin/busybox --list-full); do
		[ "${applet##*/}" = bash ] || [ -e "$applet" ] ||
			ln -s /bin/busybox "$applet"
	done
	cp -L /etc/ssl/certs/ca-certificates.crt etc/ssl/certs
	ln -s certs/ca-certificates.crt etc/ssl/cert.pem
	cp -a /usr/share/zoneinfo usr/share
	printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' \
		'nobody:x:65534:65534:nobody:/:/sbin/nologin' >etc/passwd
	printf '%s\n' 'root:x:0:root' 'nobody:x:65534:' >etc/group
	ln -s python3 usr/local/bin/python
	chroot . python3 -B -m ensurepip --default-pip
	find . -depth \( -name __pycache__ -o -name 'libpython*.a' -o \
		-path '*/python3*/test' \) -exec rm -rf {} +
	rm -rf tmp/* root/.cache
	tar --numeric-owner --owner=0 --group=0 -cf "$scratch/image.tar" .
}

say "fetching sources"
fetch zlib libffi openssl sqlite3 "python$version"
make_compiler
step "zlib" zlib
step "libffi" libffi
step "openssl" openssl
step "sqlite" sqlite
step "python$version" python
step "the root" furnish
