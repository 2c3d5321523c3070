#!/bin/sh
# SPDX-License-Identifier: MIT
# Finish the root of an image: image-hook.sh ROOT.  The packages were unpacked
# and not configured (no maintainer script ran), so what those scripts would
# have done, and we need, is done here.  Called by mmdebstrap.
set -eu
root=${1:?}

# Nothing that only people or package managers read.
for unread in usr/share/doc usr/share/man usr/share/info usr/share/locale \
	usr/share/lintian usr/share/bug usr/share/doc-base \
	usr/share/bash-completion usr/share/zoneinfo/right \
	usr/share/zoneinfo/posix usr/share/applications usr/share/pixmaps \
	usr/lib/systemd boot; do
	rm -rf "${root:?}/$unread"
done
# pip may install here, and setuptools takes no part in each start of Python.
rm -f "$root"/usr/lib/python3*/EXTERNALLY-MANAGED \
	"$root"/usr/lib/python3/dist-packages/distutils-precedence.pth
mkdir -p "$root"/workspace

cat >"$root/etc/passwd" <<'END'
root:x:0:0:root:/root:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
sandbox:x:65532:65532:sandbox:/workspace:/bin/sh
END
cat >"$root/etc/group" <<'END'
root:x:0:
nogroup:x:65534:
sandbox:x:65532:
END
cat >"$root/etc/nsswitch.conf" <<'END'
passwd: files
group: files
hosts: files dns
END

# ca-certificates' own script would make this one file of them all.
mkdir -p "$root/etc/ssl/certs"
cat "$root"/usr/share/ca-certificates/mozilla/*.crt \
	>"$root/etc/ssl/certs/ca-certificates.crt"

# The alternatives that matter: the shell, common commands, BLAS and LAPACK.
[ ! -e "$root/usr/bin/gawk" ] || ln -sf gawk "$root/usr/bin/awk"
for applet in $(chroot "$root" /bin/busybox --list); do
	[ -e "$root/usr/bin/$applet" ] || [ -e "$root/usr/sbin/$applet" ] ||
		ln -s busybox "$root/usr/bin/$applet"
done
ln -sf python3 "$root/usr/bin/python"
[ -e "$root/usr/bin/pip" ] || ln -s pip3 "$root/usr/bin/pip"
for library in "$root"/usr/lib/*/openblas-serial/*.so.[0-9]; do
	[ ! -e "$library" ] || ln -sf "openblas-serial/${library##*/}" \
		"$(dirname "$(dirname "$library")")/${library##*/}"
done

# The wheels that image-make.sh has fetched: none of them has anything to build
# or to configure.
chroot "$root" /usr/bin/python3 -I -B -c '
import glob, zipfile
for wheel in glob.glob("/tmp/wheels/*.whl"):
    zipfile.ZipFile(wheel).extractall("/usr/lib/python3/dist-packages")'
rm -rf "$root/tmp/wheels"

# Byte code for all of it, trusted as it is: the root is read-only later, and
# without it every start would compile again.  -f and -B, so that the files that
# this very process imports get the same kind.
for folder in "$root"/usr/lib/python3*; do
	chroot "$root" /usr/bin/python3 -I -B -m compileall -q -f -j 0 \
		--invalidation-mode unchecked-hash "${folder#"$root"}" >/dev/null ||
		echo "image-hook: not all of $folder compiles" >&2
done
chroot "$root" /sbin/ldconfig

# A glyph that matplotlib's own font has not is taken from the next family.
if [ -e "$root/etc/matplotlibrc" ]; then
	echo 'font.family: sans-serif, WenQuanYi Micro Hei' \
		>>"$root/etc/matplotlibrc"
fi

# matplotlib's list of its fonts, which a person's run links to, and would else
# make each time: sandbox/cell/python/libraries.py.
if [ -d "$root/usr/lib/python3/dist-packages/matplotlib" ]; then
	MPLCONFIGDIR=/usr/share/inline/matplotlib chroot "$root" \
		/usr/bin/python3 -I -B -c 'import matplotlib.font_manager'
fi
