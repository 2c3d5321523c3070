#!/bin/sh
# SPDX-License-Identifier: MIT
# Find a Docker engine that answers, or start one; see that there are loop
# devices.
#
# The engine is the host's: once started it stays, as after a boot, and ending
# Inline does not end it.  With systemd it is started as a service; without,
# `dockerd` runs in a session of its own and logs to DOCKERD_LOG.  DOCKERD_ARGS
# (words) go to that dockerd.  An engine that DOCKER_HOST names is somebody
# else's: it is used, never started.
set -eu
cd "$(dirname "$0")"/../..
. sandbox/setup/env.sh

docker=$(setting DOCKER_BINARY docker)
podman="podman is not supported: it refuses the options by which a sandbox's \
quota holds (a volume with volume-nocopy, a tmpfs with nr_inodes)"
log=${DOCKERD_LOG:-/var/log/dockerd.log}

# answers: the engine does, within a minute: the machine may be busy.
answers() {
	timeout 60 "$docker" version --format '{{.Server.Version}}' \
		>/dev/null 2>&1
}

# What the client says of an engine that does not answer.
complaint() {
	timeout 60 "$docker" version 2>&1 >/dev/null | tail -n 1
}

# The broker holds each sandbox's quota by a file system image on a loop device.
loop_devices() {
	[ "$(id -u)" = 0 ] || return 0
	[ -e /dev/loop-control ] || modprobe loop 2>/dev/null ||
		mknod /dev/loop-control c 10 237 ||
		say "there are no loop devices here, and sandboxes need them"
}

start_service() {
	say "starting the Docker engine (systemctl start docker)"
	systemctl start docker ||
		die "it did not start; see: journalctl -u docker"
	answers || die "started, but: $(complaint)"
}

# A container or a minimal system may have no control groups mounted.
mount_cgroups() {
	[ -d /sys/fs/cgroup ] || return 0
	grep -q ' /sys/fs/cgroup' /proc/mounts ||
		mount -t cgroup2 cgroup2 /sys/fs/cgroup ||
		say "no control groups are mounted, and mounting them failed"
}

# What a daemon left that was killed: its number may be another's by now, and
# dockerd would take that for itself, or for its containerd.
remove_stale_pids() {
	for name in docker.pid docker/containerd/containerd.pid; do
		file=/var/run/$name
		[ -s "$file" ] || continue
		case $(cat "/proc/$(cat "$file")/comm" 2>/dev/null) in
		dockerd | containerd) ;;
		*) rm -f "$file" ;;
		esac
	done
}

start_daemon() {
	command -v dockerd >/dev/null || die "there is no dockerd to start"
	mount_cgroups
	remove_stale_pids
	say "starting the Docker engine (dockerd, log: $log)"
	# shellcheck disable=SC2086 # words
	if sandbox/setup/detach.py 300 "$log" dockerd ${DOCKERD_ARGS-}; then
		:
	elif [ -f "$log" ] && tail -n 40 "$log" | grep -q iptables; then
		say "it cannot use iptables: once more without." \
			"Containers get no network then: no /il pip"
		# shellcheck disable=SC2086 # words
		sandbox/setup/detach.py 300 "$log" \
			dockerd --iptables=false --ip6tables=false ${DOCKERD_ARGS-} ||
			daemon_failed
	else
		daemon_failed
	fi
	answers || die "started, but: $(complaint)"
}

daemon_failed() {
	[ ! -f "$log" ] || tail -n 15 "$log" >&2
	die "dockerd did not start; its log is $log"
}

# The profile for the APIs' containers, where AppArmor is on and we may load it;
# `ilctl doctor` tells whether it is in force.
load_profile() {
	enabled=/sys/module/apparmor/parameters/enabled
	[ "$(cat $enabled 2>/dev/null)" = Y ] && [ "$(id -u)" = 0 ] &&
		command -v apparmor_parser >/dev/null || return 0
	apparmor_parser --replace --skip-cache systemd/apparmor/inline-api >&2 ||
		say "AppArmor did not take our profile"
}

main() {
	command -v "$docker" >/dev/null ||
		die "no Docker client '$docker' (DOCKER_BINARY)"
	case $("$docker" --version 2>/dev/null) in
	*[Pp]odman*) die "DOCKER_BINARY: $podman" ;;
	esac
	loop_devices
	load_profile
	! answers || return 0
	if [ -n "${DOCKER_HOST-}" ] && [ -z "${DOCKERD_ARGS-}" ]; then
		die "DOCKER_HOST=$DOCKER_HOST: $(complaint)"
	fi
	if [ "$(id -u)" != 0 ]; then
		say "$(complaint)"
		die "run this as root (sudo), or start the engine and join its group:" \
			"sudo systemctl start docker; sudo usermod -aG docker,disk $(id -un)"
	fi
	if [ -d /run/systemd/system ]; then
		start_service
	else
		start_daemon
	fi
}

main
