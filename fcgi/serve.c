#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

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
#define PASSED_FD 3
/* How long what is already in the queue is answered after SIGTERM. */
#define DRAIN_MS 2000

static bool
socket_was_passed(void)
{
	const char *fds = getenv("LISTEN_FDS");
	const char *pid = getenv("LISTEN_PID");
	int64_t value;

	if (fds == NULL || pid == NULL || strcmp(fds, "1") != 0)
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
	if (socket_was_passed()) {
		if (fd_set_nonblock(PASSED_FD, err) < 0)
			return err_wrap(err, "passed socket");
		serve->listen_fd = PASSED_FD;
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

static bool
serve_one(struct http_request *req, const struct serve_calls *calls)
{
	if (!http_accept(req))
		return false;
	calls->answer(calls->arg, req);
	http_finish(req);
	if (calls->after != NULL)
		calls->after(calls->arg);
	return true;
}

/* Nobody new finds the socket; those who have connected get their answer. */
static void
serve_drain(struct serve *serve, struct http_request *req,
    const struct serve_calls *calls)
{
	int64_t deadline = clock_monotonic_ms() + DRAIN_MS;

	if (serve->path == NULL)
		return; /* the queue outlives us: who comes next answers it */
	(void)unlink(serve->path);
	while (clock_monotonic_ms() < deadline && serve_one(req, calls))
		;
}

int
serve_run(struct serve *serve, const struct serve_calls *calls, struct err *err)
{
	struct http_request req;
	int signal_fd;
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };

	http_init(&req, serve->listen_fd);
	signal_fd = fd_signals(NULL, err);
	if (signal_fd < 0)
		return -1;
	p[0].fd = serve->listen_fd;
	p[1].fd = signal_fd;
	while (p[1].revents == 0) {
		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			(void)err_system(err, "poll");
			(void)close(signal_fd);
			return -1;
		}
		if (p[0].revents != 0)
			(void)serve_one(&req, calls);
	}
	serve_drain(serve, &req, calls);
	http_finish(&req);
	(void)close(signal_fd);
	return 0;
}
