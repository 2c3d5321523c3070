#include "run_state.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base.h"

size_t
run_state_hear(struct supervisor *k)
{
	struct pollfd p[] = {
		{ .fd = k->control }, /* a lease may be waiting there */
		{ .fd = k->state->channel, .events = POLLIN },
	};
	ssize_t len;

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (p[0].revents != 0)
		base_leave();
	len = recv(k->state->channel, k->state->said, RUN_STATE_SAID_MAX - 1,
	    0);
	if (len < 0)
		len = 0;
	k->state->said[len] = '\0';
	return (size_t)len;
}
