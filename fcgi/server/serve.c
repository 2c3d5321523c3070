/* SPDX-License-Identifier: MIT */
#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"

/* How long what is already in the queue is answered after SIGTERM. */
#define DRAIN_MS 2000

bool
serve_options_parse(struct serve_options *options, const char *takes, int argc,
    char **argv)
{
	int c;

	*options = (struct serve_options){ .level = LOG_LEVEL_INFO };
	while ((c = getopt(argc, argv, takes)) != -1) {
		if (c == 'e')
			options->env_file = optarg;
		else if (c == 't')
			options->test = true;
		else if (c == 'l')
			options->linger = true;
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

/* Who waits to be answered. */
struct batch {
	struct http_request *requests;
	size_t count;
	size_t most;
	int listen_fd;
	bool more; /* others waited when it was answered */
};

/* One request at a time, unless they are settled together. */
static void
batch_init(struct batch *batch, const struct serve_calls *calls, int listen_fd)
{
	*batch = (struct batch){
		.listen_fd = listen_fd,
		.most = calls->settle != NULL ? SERVE_TOGETHER : 1,
	};
	batch->requests = xcalloc(batch->most, sizeof(*batch->requests));
	for (size_t i = 0; i < batch->most; i++) {
		http_init(&batch->requests[i], listen_fd);
		batch->requests[i].hasty = calls->settle != NULL;
	}
}

/* Take one.  False: there is none. */
static bool
batch_take(struct batch *batch, const struct serve_calls *calls)
{
	struct http_request *req = &batch->requests[batch->count];

	if (!http_accept(req))
		return false;
	if (calls->take(calls->arg, req, batch->count))
		batch->count++;
	else
		http_finish(req);
	return true;
}

/* Those that have come are answered together.  False: there were none. */
static bool
serve_some(struct batch *batch, const struct serve_calls *calls)
{
	int64_t until_ms = clock_monotonic_ms() + SERVE_GATHER_MS;
	struct pollfd others = { .fd = batch->listen_fd, .events = POLLIN };
	bool some = batch_take(batch, calls);

	while (some && batch->count < batch->most &&
	    clock_monotonic_ms() < until_ms && batch_take(batch, calls))
		;
	http_rest();
	if (batch->count > 0)
		calls->settle(calls->arg, batch->count);
	for (size_t i = 0; i < batch->count; i++)
		http_finish(&batch->requests[i]);
	http_rest();
	batch->count = 0;
	batch->more = some && calls->after != NULL && poll(&others, 1, 0) > 0;
	if (calls->after != NULL)
		calls->after(calls->arg, batch->more);
	return some;
}

/* Nobody new finds the socket; those who have connected get their answer. */
static void
serve_drain(struct serve *serve, struct batch *batch,
    const struct serve_calls *calls)
{
	int64_t deadline = clock_monotonic_ms() + DRAIN_MS;

	if (serve->path == NULL)
		return; /* the queue outlives us: who comes next answers it */
	(void)unlink(serve->path);
	while (clock_monotonic_ms() < deadline && serve_some(batch, calls))
		;
}

static int
watch(int epoll_fd, int fd, uint32_t events, struct err *err)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		return err_system(err, "epoll_ctl");
	return 0;
}

/* Until a signal comes, or waiting itself fails.  Others serve the socket, too:
 * who connects wakes one who has nothing to do, not all. */
static int
serve_loop(struct batch *batch, const struct serve_calls *calls, int signal_fd,
    struct err *err)
{
	auto_close int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0)
		return err_system(err, "epoll_create1");
	if (watch(epoll_fd, signal_fd, EPOLLIN, err) != 0 ||
	    watch(epoll_fd, batch->listen_fd, EPOLLIN | EPOLLEXCLUSIVE, err) !=
		0)
		return -1;
	for (;;) {
		struct epoll_event events[2];
		int n = epoll_wait(epoll_fd, events, 2, batch->more ? 0 : -1);

		if (n < 0 && errno != EINTR)
			return err_system(err, "epoll_wait");
		for (int i = 0; i < n; i++)
			if (events[i].data.fd == signal_fd)
				return 0;
		if (n > 0 || batch->more)
			(void)serve_some(batch, calls);
	}
}

int
serve_run(struct serve *serve, const struct serve_calls *calls, struct err *err)
{
	struct batch batch;
	auto_close int signal_fd = -1;
	int result;

	batch_init(&batch, calls, serve->listen_fd);
	signal_fd = fd_signals(NULL, err);
	result = signal_fd < 0 ? -1 : serve_loop(&batch, calls, signal_fd, err);
	if (result == 0)
		serve_drain(serve, &batch, calls);
	free(batch.requests);
	return result;
}
