/* SPDX-License-Identifier: MIT */
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

/* All that is sent passes the one device, or is counted as refused. */
static const char *const counters[NETWORK_FILES] = { "self/net/dev",
	"self/net/snmp", "self/net/snmp6" };
/* Docker sets it to 0 in a container, and so do we; where that is not allowed,
 * a run's ports begin at 1024. */
#define PORTS "sys/net/ipv4/ip_unprivileged_port_start"

void
network_init(struct network *network)
{
	for (int i = 0; i < NETWORK_FILES; i++)
		network->files[i] = -1;
}

static size_t
read_counter(int fd, char text[NETWORK_MAX])
{
	ssize_t len = fd < 0 ? 0 : pread(fd, text, NETWORK_MAX, 0);

	return len > 0 ? (size_t)len : 0;
}

/* Has it counted anything since it was made, or is there none? */
static bool
is_used(struct network *network)
{
	if (network->files[0] < 0)
		return true;
	for (int i = 0; i < NETWORK_FILES; i++) {
		size_t len = read_counter(network->files[i], network->now);

		if (len != network->lens[i] ||
		    memcmp(network->now, network->noted[i], len) != 0)
			return true;
	}
	return false;
}

static const char *
raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC,
	    0);
	long done;

	if (fd < 0)
		return "socket";
	request.ifr_flags = IFF_UP;
	done = syscall(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
	(void)close(fd);
	return done < 0 ? "loopback device" : NULL;
}

static void
open_ports(int proc)
{
	int fd = openat(proc, PORTS, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	(void)close(fd);
}

const char *
network_renew(struct network *network, int proc)
{
	const char *failed;

	if (!is_used(network))
		return NULL;
	for (int i = 0; i < NETWORK_FILES; i++)
		base_close(&network->files[i]);
	if (unshare(CLONE_NEWNET) < 0)
		return "unshare network";
	failed = raise_loopback();
	if (failed != NULL)
		return failed;
	open_ports(proc);
	for (int i = 0; i < NETWORK_FILES; i++) {
		network->files[i] = openat(proc, counters[i],
		    O_RDONLY | O_CLOEXEC);
		/* a kernel without IPv6 has two */
		if (network->files[i] < 0 && errno != ENOENT)
			return "counters";
		network->lens[i] = read_counter(network->files[i],
		    network->noted[i]);
	}
	return NULL;
}
