#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#include "../sandbox/base/buf.h"
#include "../sandbox/base/cleanup.h"
#include "../sandbox/base/clock.h"
#include "../sandbox/base/config.h"
#include "../sandbox/base/err.h"
#include "../sandbox/base/fd.h"
#include "../sandbox/base/log.h"
#include "../sandbox/base/text.h"

#define SOCKET_MODE 0660
/* nginx gives up at once when the queue is full, so it is long; the kernel cuts
 * it at net.core.somaxconn. */
#define BACKLOG 4096
/* How long what is already in the queue is answered after SIGTERM. */
#define DRAIN_MS 2000

bool
serve_options_parse(struct serve_options *options, int argc, char **argv)
{
	int c;

	*options = (struct serve_options){ .level = LOG_LEVEL_INFO };
	while ((c = getopt(argc, argv, "e:tv")) != -1) {
		if (c == 'e')
			options->env_file = optarg;
		else if (c == 't')
			options->test = true;
		else if (c == 'v')
			options->level = LOG_LEVEL_DEBUG;
		else
			return false;
	}
	return optind == argc;
}

bool
serve_was_passed(int count)
{
	const char *fds = getenv("LISTEN_FDS");
	const char *pid = getenv("LISTEN_PID");
	int64_t value;

	if (fds == NULL || pid == NULL ||
	    !text_parse_int(fds, 1, INT32_MAX, &value) || value != count)
		return false;
	return text_parse_int(pid, 1, INT32_MAX, &value) && value == getpid();
}

int
serve_open(struct serve *serve, const struct config *config, const char *name,
    struct err *err)
{
	auto_free char *path = config_state_path(config, name);

	serve->listen_fd = -1;
	serve->path = NULL;
	if (serve_was_passed(1)) {
		if (fd_set_nonblock(SERVE_PASSED_FD, err) < 0)
			return err_wrap(err, "passed socket");
		serve->listen_fd = SERVE_PASSED_FD;
		/* whatever the one who made it has asked for */
		(void)listen(SERVE_PASSED_FD, BACKLOG);
		return 0;
	}
	serve->listen_fd = fd_listen_unix(path, SOCK_STREAM | SOCK_NONBLOCK,
	    SOCKET_MODE, err);
	if (serve->listen_fd < 0)
		return err_wrap(err, "listen on %s", path);
	(void)listen(serve->listen_fd, BACKLOG);
	serve->path = path;
	path = NULL;
	return 0;
}

void
serve_close(struct serve *serve)
{
	if (serve->path != NULL)
		(void)unlink(serve->path);
	free(serve->path);
	serve->path = NULL;
	if (serve->listen_fd >= 0)
		(void)close(serve->listen_fd);
	serve->listen_fd = -1;
}

/* Who waits to be answered. */
struct crowd {
	struct http_request *requests;
	size_t count;
	size_t most;
	int listen_fd;
};

static bool
is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void
crowd_init(struct crowd *crowd, const struct serve_calls *calls, int listen_fd)
{
	crowd->count = 0;
	crowd->listen_fd = listen_fd;
	crowd->most = calls->settle != NULL ? SERVE_TOGETHER : 1;
	crowd->requests = xcalloc(crowd->most, sizeof(*crowd->requests));
	for (size_t i = 0; i < crowd->most; i++)
		http_init(&crowd->requests[i], listen_fd);
}

/* Take one.  False: there is none. */
static bool
crowd_take(struct crowd *crowd, const struct serve_calls *calls)
{
	struct http_request *req = &crowd->requests[crowd->count];

	if (!http_accept(req))
		return false;
	if (calls->take(calls->arg, req, crowd->count))
		crowd->count++;
	else
		http_finish(req);
	return true;
}

/* Those that have come are answered together.  False: there were none. */
static bool
serve_some(struct crowd *crowd, const struct serve_calls *calls)
{
	int64_t until_ms = clock_monotonic_ms() + SERVE_GATHER_MS;
	bool some = crowd_take(crowd, calls);

	while (some && crowd->count < crowd->most &&
	    clock_monotonic_ms() < until_ms && crowd_take(crowd, calls))
		;
	if (crowd->count > 0)
		calls->settle(calls->arg, crowd->count);
	for (size_t i = 0; i < crowd->count; i++)
		http_finish(&crowd->requests[i]);
	crowd->count = 0;
	if (calls->after != NULL)
		calls->after(calls->arg, some && is_readable(crowd->listen_fd));
	return some;
}

/* Nobody new finds the socket; those who have connected get their answer. */
static void
serve_drain(struct serve *serve, struct crowd *crowd,
    const struct serve_calls *calls)
{
	int64_t deadline = clock_monotonic_ms() + DRAIN_MS;

	if (serve->path == NULL)
		return; /* the queue outlives us: who comes next answers it */
	(void)unlink(serve->path);
	while (clock_monotonic_ms() < deadline && serve_some(crowd, calls))
		;
}

/* Until a signal comes, or waiting itself fails. */
static int
serve_loop(struct serve *serve, struct crowd *crowd,
    const struct serve_calls *calls, int signal_fd, struct err *err)
{
	struct pollfd p[2] = {
		{ .fd = serve->listen_fd, .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
	};

	while (p[1].revents == 0) {
		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return err_system(err, "poll");
		}
		if (p[0].revents != 0)
			(void)serve_some(crowd, calls);
	}
	return 0;
}

int
serve_run(struct serve *serve, const struct serve_calls *calls, struct err *err)
{
	struct crowd crowd;
	int signal_fd;
	int result = -1;

	crowd_init(&crowd, calls, serve->listen_fd);
	signal_fd = fd_signals(NULL, err);
	if (signal_fd >= 0)
		result = serve_loop(serve, &crowd, calls, signal_fd, err);
	if (result == 0)
		serve_drain(serve, &crowd, calls);
	cleanup_close(&signal_fd);
	free(crowd.requests);
	return result;
}
