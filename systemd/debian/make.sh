#!/bin/sh
# SPDX-License-Identifier: MIT
# Make the Debian packages, and an apt repository of them:
#
#	make.sh deb|deb-repo BUILD VERSION
#
#	BUILD/deb		the packages, and the copy of the tree they come from
#	BUILD/deb-repo		a signed repository; older versions stay in it
#
# DEB_KEY (a fingerprint) is the key that signs, in the caller's gpg.  Without it
# that is a key named "Inline packages", which is made when there is none.
# ../DECISIONS.md says why.
set -eu
cd "$(dirname "$0")"/../..
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES

goal=$1 version=$3
mkdir -p "$2/deb"
out=$(realpath "$2")
tree=$out/deb/inline-$version

# What git knows, as it is here; without git, all of an unpacked `make dist`.
copy_tree() {
	rm -rf "$out"/deb/*
	mkdir -p "$tree"
	if [ -e .git ]; then
		git ls-files -z
	else
		find . -path ./build -prune -o -type f -print0
	fi | tar -c --null -T - | tar -x -C "$tree"
	cp -R "$tree/systemd/debian" "$tree/debian"
}

# The moment of the last commit: the same commit gives the same packages.
moment() {
	if [ -e .git ]; then
		git log -1 --format=%cD
	else
		LC_ALL=C date -R -r GNUmakefile
	fi
}

make_packages() {
	copy_tree
	cat >"$tree/debian/changelog" <<-END
		inline ($version) unstable; urgency=medium

		  * /usr/share/doc/inline/CHANGELOG.md tells operators what is new.

		 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(moment)
	END
	# What the build needs deps.sh has found by using it.
	(cd "$tree" && DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS-}" \
		dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$out/deb/log" 2>&1 || {
		tail -n 30 "$out/deb/log" >&2
		exit 1
	}
	lintian --fail-on error --suppress-tags bogus-mail-host \
		"$out"/deb/*.changes || exit
	ls "$out"/deb/*.deb
}

# The first key of that name that can sign.
own_key() {
	gpg --batch --with-colons --list-secret-keys "=Inline packages" \
		2>/dev/null | sed -n 's/^fpr:*\([0-9A-F]*\):.*/\1/p' | head -n 1
}

make_repository() {
	key=${DEB_KEY:-$(own_key)}
	if [ -z "$key" ]; then
		echo "making a key, \"Inline packages\": keep it" >&2
		gpg --batch --quiet --passphrase '' --quick-generate-key \
			'Inline packages' ed25519 sign never
		key=$(own_key)
	fi
	mkdir -p "$out/deb-repo"
	cp "$out"/deb/*.deb "$out/deb-repo/"
	cd "$out/deb-repo"
	gpg --batch --armor --export "$key" >inline.asc
	apt-ftparchive packages . >Packages.new
	mv Packages.new Packages
	gzip -9nkf Packages
	apt-ftparchive -o APT::FTPArchive::Release::Origin=Inline \
		-o APT::FTPArchive::Release::Label=Inline release . >Release.new
	gpg --batch --quiet --yes --local-user "$key" --clearsign \
		--output InRelease Release.new
	rm -f Release.new
	echo "$out/deb-repo, signed by $key"
}

case $goal in
deb) make_packages ;;
deb-repo) make_packages && make_repository ;;
*)
	echo "usage: make.sh deb|deb-repo BUILD VERSION" >&2
	exit 64
	;;
esac
