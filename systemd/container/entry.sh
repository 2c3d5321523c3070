#!/bin/sh
# SPDX-License-Identifier: MIT
# How a container of Inline begins; README.md has the command lines.
#
#	entry.sh		all of `make run`, with the host's engine where its
#				socket is mounted, otherwise with one that is
#				started here
#	entry.sh COMMAND...	that one: ilctl, say
#
# What cannot work is refused here, with the option of `docker run` that is
# missing.  From then on the process is `ilctl run`, unless there is an engine
# to end after it.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

home=${IL_STATE_DIR%/*}
docker=$(setting DOCKER_BINARY docker)

[ $# = 0 ] || exec "$@"

# refuse TEXT...: a restart would not help: 78, as the programs have it.
refuse() {
	say "$@"
	exit 78
}

# is_mount PATH: the operator has put something there.
is_mount() {
	grep -qF " $1 " /proc/self/mountinfo
}

# listen PUBLISHED: nginx listens on all addresses, and trusts no network but
# those that IL_HTTP_TRUST names.  Requests through a published port come from
# our gateway's address, whoever sent them: it is the host's only where the port
# is PUBLISHED on 127.0.0.1.
listen() {
	IL_HTTP_TRUST=$(setting IL_HTTP_TRUST none)
	export IL_HTTP_TRUST
	if [ "$1" = 127.0.0.1 ]; then
		gateway=$(ip -4 route show default |
			sed -n 's/^default via \([0-9.]*\) .*/\1/p' | head -n 1)
		IL_HTTP_GATEWAY=$(setting IL_HTTP_GATEWAY "$gateway")
		export IL_HTTP_GATEWAY
	elif [ "$IL_HTTP_TRUST" = none ]; then
		say "requests need a token (IL_API_TOKENS_FILE): neither" \
			"INLINE_PUBLISHED nor IL_HTTP_TRUST is set"
	fi
}

# may_open FILE: the rights of this container allow it.
may_open() {
	(: <>"$1") 2>/dev/null
}

# ---- with the host's engine ----

# of_ourselves FORMAT: what the engine says of this container.
of_ourselves() {
	id=$(sed -n 's|.*/containers/\([0-9a-f]\{64\}\)/hostname .*|\1|p' \
		/proc/self/mountinfo | head -n 1)
	[ -z "$id" ] || "$docker" inspect --type container \
		--format "$1" "$id" 2>/dev/null || :
}

# The quota of a sandbox is a file system on a loop device, which the engine
# mounts: so the rights to make and set one up are needed here.
check_loop_devices() {
	rules="--device-cgroup-rule 'c 10:237 rwm' --device-cgroup-rule 'b 7:* rwm'"
	why="a sandbox's quota is held by a loop device"
	[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237 ||
		refuse "$why: --cap-add MKNOD is missing"
	may_open /dev/loop-control || refuse "$why: $rules is missing"
	device=$(losetup -f) || refuse "$why: the host has none to give"
	[ -e "$device" ] || mknod "$device" b 7 "${device#/dev/loop}" ||
		refuse "$why: --cap-add MKNOD is missing"
	may_open "$device" || refuse "$why: $rules is missing"
}

# The engine mounts files of ours into cells, by their path on the host.
check_paths() {
	# shellcheck disable=SC2016 # a template of the engine's
	found=$(of_ourselves '{{range .Mounts}}{{.Destination}}={{.Source}} {{end}}')
	case " $found " in
	*" $home=$home "*) ;;
	*) refuse "the host's engine has to find $home at the same path:" \
		"-v $home:$home is missing" ;;
	esac
}

# Who comes through a port that is open to all may come from the host's address.
check_ports() {
	mode=$(of_ourselves '{{.HostConfig.NetworkMode}}')
	published=
	# shellcheck disable=SC2016 # a template of the engine's
	for address in $(of_ourselves '{{range .HostConfig.PortBindings}}{{range .}}:{{.HostIp}} {{end}}{{end}}'); do
		[ "$address" = :127.0.0.1 ] || refuse "whoever reaches the port" \
			"may run code: publish it as -p 127.0.0.1:8080:8080" \
			"(README.md shows how it is opened to others)"
		published=127.0.0.1
	done
	case $mode in
	'' | host | none | container:*) ;; # on loopback, whoever's that is
	*) listen "$published" ;;
	esac
}

outside() {
	export DOCKER_HOST="${DOCKER_HOST:-unix:///var/run/docker.sock}"
	check_loop_devices
	sandbox/setup/engine.sh
	check_paths
	check_ports
	exec sandbox/setup/run.sh /opt/inline
}

# ---- with an engine in here ----

# With cgroup v2, who hands controllers down may have no process of its own.
# Where what we see is the host's (--cgroupns host) there is nothing to divide.
nest_cgroups() {
	cgroup=/sys/fs/cgroup
	[ -f $cgroup/cgroup.controllers ] &&
		grep -qx 0::/ /proc/self/cgroup || return 0
	mkdir -p $cgroup/init
	while read -r pid; do
		echo "$pid" >$cgroup/init/cgroup.procs || : # gone, say
	done <$cgroup/cgroup.procs
	sed -e 's/ / +/g' -e 's/^/+/' $cgroup/cgroup.controllers \
		>$cgroup/cgroup.subtree_control ||
		say "no control groups for the engine in here"
}

# Our own bridge is still there when a container starts again in the network of
# its pod; somebody else's is not ours to use.
take_network() {
	of=$home/docker/of-network
	network=$(stat -L -c %i /proc/self/ns/net)
	[ ! -e /sys/class/net/docker0 ] ||
		[ "$(cat "$of" 2>/dev/null)" = "$network" ] ||
		refuse "the engine in here needs a network of its own, not" \
			"--network host: -p 127.0.0.1:8080:8080"
	mkdir -p "${of%/*}"
	echo "$network" >"$of"
}

# What it says goes where the programs' words go, but for what it says of each
# container; it tries iptables only where that works.
start_engine() {
	rm -f /run/dockerd.log
	mkfifo /run/dockerd.log
	grep --line-buffered -v level=info </run/dockerd.log >&2 &
	arguments="--data-root $home/docker --log-level warn"
	iptables -t nat -nL >/dev/null 2>&1 || {
		say "iptables does not work here: no network for /il pip"
		arguments="$arguments --iptables=false --ip6tables=false"
	}
	DOCKERD_LOG=/run/dockerd.log DOCKERD_ARGS=$arguments \
		sandbox/setup/engine.sh
}

# Images that the operator has put into a folder, once each.
load_images() {
	for tar in /images/*.tar*; do
		[ -f "$tar" ] || continue
		stamp=$home/docker/loaded-${tar##*/}
		now=$(stat -c '%Y %s' "$tar")
		[ "$(cat "$stamp" 2>/dev/null)" != "$now" ] || continue
		say "loading $tar"
		if "$docker" load --quiet --input "$tar" >&2; then
			echo "$now" >"$stamp"
		fi
	done
}

# Wait on a descriptor until the process is gone.
wait_gone() {
	python3 -c 'import os, select, sys
select.select([os.pidfd_open(int(sys.argv[1]))], [], [])' "$1" 2>/dev/null || :
}

# An engine on the volume; then the service, which is ended with it, and before.
inside() {
	is_mount "$home" || refuse "the engine in here needs a volume:" \
		"-v inline:$home is missing"
	take_network
	listen "${INLINE_PUBLISHED-}"
	nest_cgroups
	start_engine
	load_images
	engine=$(cat /run/docker.pid)
	ended=
	trap 'ended=1' TERM INT HUP
	# Ctrl-C is for this shell alone: a second signal would not wait.
	setsid sandbox/setup/run.sh /opt/inline &
	service=$!
	trap 'ended=1; kill -TERM "$service" 2>/dev/null' TERM INT HUP
	[ -z "$ended" ] || kill -TERM "$service"
	{
		wait_gone "$engine"
		kill -TERM "$service" 2>/dev/null &&
			say "the engine has ended"
	} &
	watch=$!
	code=0
	wait "$service" || code=$?
	while [ "$code" -gt 128 ] && kill -0 "$service" 2>/dev/null; do
		code=0
		wait "$service" || code=$?
	done
	kill -TERM "$engine" 2>/dev/null || code=1 # it ended first
	wait "$watch" || :
	exit "$code"
}

mkdir -p "$home" "${IL_DATABASE%/*}"
tokens=$(setting IL_API_TOKENS_FILE '')
[ -z "$tokens" ] || [ -e "$tokens" ] || {
	mkdir -p "${tokens%/*}" && : >"$tokens" # with the rights that it will need
}
if [ -n "${DOCKER_HOST-}" ] || is_mount /run/docker.sock ||
	is_mount /var/run/docker.sock; then
	outside
fi
# CAP_SYS_ADMIN, of what --privileged gives.
rights=$(sed -n 's/^CapEff:[[:space:]]*/0x/p' /proc/self/status)
[ $(((rights >> 21) & 1)) = 1 ] || refuse "no engine: either the host's," \
	"-v /var/run/docker.sock:/var/run/docker.sock, or --privileged for one" \
	"in here"
inside
