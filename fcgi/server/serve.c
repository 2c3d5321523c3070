/* SPDX-License-Identifier: MIT */
#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/log.h"

/* How long what is already in the queue is answered after SIGTERM. */
#define DRAIN_MS 2000
#define EVENTS_MAX 3 /* that wake a child */

/* Who waits to be answered. */
struct batch {
	const struct serve *serve;
	struct http_request **requests;
	size_t count;
	size_t most;
	int listen_fd;
	bool more; /* others waited when it was answered */
};

/* Room for the index-th of them. */
static void
batch_renew(struct batch *batch, size_t index)
{
	struct http_request *req = xcalloc(1, sizeof(*req));

	http_init(req, batch->listen_fd);
	req->hasty = batch->serve->settle != NULL;
	batch->requests[index] = req;
}

/* Take one.  False: there is none. */
static bool
batch_take(struct batch *batch)
{
	struct http_request *req = batch->requests[batch->count];

	if (!http_accept(req))
		return false;
	if (batch->serve->take(batch->serve->arg, req, batch->count))
		batch->count++;
	else
		http_finish(req);
	return true;
}

/* Those that have come are answered together.  False: there were none. */
static bool
serve_some(struct batch *batch)
{
	const struct serve *serve = batch->serve;
	int64_t until_ms = clock_monotonic_ms() + SERVE_GATHER_MS;
	struct pollfd others = { .fd = batch->listen_fd, .events = POLLIN };
	bool some = batch_take(batch);

	while (some && batch->count < batch->most &&
	    clock_monotonic_ms() < until_ms && batch_take(batch))
		;
	http_rest();
	if (serve->settle != NULL && batch->count > 0)
		serve->settle(serve->arg, batch->count);
	for (size_t i = 0; i < batch->count; i++)
		if (batch->requests[i]->held)
			batch_renew(batch, i);
		else
			http_finish(batch->requests[i]);
	http_rest();
	batch->count = 0;
	batch->more = some && serve->after != NULL && poll(&others, 1, 0) > 0;
	if (serve->after != NULL)
		serve->after(serve->arg, batch->more);
	return some;
}

/* When to see to what is held back. */
static int64_t
batch_due_ms(const struct batch *batch)
{
	const struct serve *serve = batch->serve;

	return serve->due_ms != NULL ? serve->due_ms(serve->arg) : INT64_MAX;
}

/* What the loop waits for, in one descriptor.  Others serve the socket, too:
 * who connects wakes one who has nothing to do, not all. */
static int
batch_epoll(const struct batch *batch, int signal_fd, struct err *err)
{
	const struct serve *serve = batch->serve;
	auto_close int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[EVENTS_MAX] = {
		{ .events = EPOLLIN, .data.fd = signal_fd },
		{ .events = EPOLLIN | EPOLLEXCLUSIVE,
		    .data.fd = batch->listen_fd },
		{ .events = EPOLLIN },
	};
	int count = 2;

	if (epoll_fd < 0)
		return err_system(err, "epoll_create1");
	if (serve->events_fd != NULL &&
	    (events[2].data.fd = serve->events_fd(serve->arg)) >= 0)
		count = 3;
	for (int i = 0; i < count; i++)
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, events[i].data.fd,
			&events[i]) != 0)
			return err_system(err, "epoll_ctl");
	return steal_fd(&epoll_fd);
}

/* Until a signal comes, or waiting itself fails. */
static int
serve_loop(struct batch *batch, struct err *err)
{
	const struct serve *serve = batch->serve;
	auto_close int signal_fd = fd_signals(0, err);
	auto_close int epoll_fd = signal_fd < 0 ?
	    -1 :
	    batch_epoll(batch, signal_fd, err);

	if (epoll_fd < 0)
		return -1;
	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int64_t due_ms = batch_due_ms(batch);
		int n = epoll_wait(epoll_fd, events, EVENTS_MAX,
		    batch->more ? 0 : clock_poll_timeout(due_ms));
		bool came = batch->more;
		bool events_came = false;

		if (n < 0 && errno != EINTR)
			return err_system(err, "epoll_wait");
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == signal_fd)
				return 0;
			if (events[i].data.fd == batch->listen_fd)
				came = true;
			else
				events_came = true;
		}
		/* first who waits already for an answer that is there */
		if (events_came || clock_monotonic_ms() >= due_ms)
			serve->events(serve->arg);
		if (came)
			(void)serve_some(batch);
	}
}

/* The same where whoever connects is no FastCGI.  One that cannot accept ends,
 * as in http_accept(). */
static int
serve_plain(const struct serve *serve, void (*plain)(void *arg, int fd),
    int listen_fd, struct err *err)
{
	auto_close int signal_fd = fd_signals(0, err);
	struct pollfd fds[] = { { .fd = signal_fd, .events = POLLIN },
		{ .fd = listen_fd, .events = POLLIN } };

	if (signal_fd < 0)
		return -1;
	for (;;) {
		auto_close int fd = -1;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_system(err, "poll");
		if (fds[0].revents != 0)
			return 0;
		fd = accept4(listen_fd, NULL, NULL,
		    SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			plain(serve->arg, fd);
		/* another one may have been faster, or the client is gone */
		else if (errno != EAGAIN && errno != EINTR &&
		    errno != ECONNABORTED)
			return err_system(err, "accept4");
	}
}

/* By FastCGI, until a signal comes; then what is in the queue.  path: of our
 * own socket, or NULL. */
static int
serve_fastcgi(const struct serve *serve, int listen_fd, const char *path,
    struct err *err)
{
	struct batch batch = { .serve = serve,
		.listen_fd = listen_fd,
		/* One at a time, unless they are settled together. */
		.most = serve->settle != NULL ? SERVE_TOGETHER : 1 };
	int64_t deadline;
	int result;

	/* libfcgi is set up before the signals are blocked. */
	batch.requests = xcalloc(batch.most, sizeof(struct http_request *));
	for (size_t i = 0; i < batch.most; i++)
		batch_renew(&batch, i);
	result = serve_loop(&batch, err);
	if (result == 0 && serve->drain && path != NULL) {
		/* Nobody new finds the socket; those who have connected get
		 * their answer. */
		(void)unlink(path);
		deadline = clock_monotonic_ms() + DRAIN_MS;
		while (clock_monotonic_ms() < deadline && serve_some(&batch))
			if (serve->events != NULL)
				serve->events(serve->arg);
	}
	if (serve->stop != NULL)
		serve->stop(serve->arg);
	for (size_t i = 0; i < batch.most; i++)
		free(batch.requests[i]);
	free(batch.requests);
	return result;
}

int
serve_child(const struct serve *serve, size_t index, int listen_fd,
    const char *path, void (*plain)(void *arg, int fd))
{
	struct err err;
	int result;

	if (serve->start != NULL)
		serve->start(serve->arg, index);
	result = plain != NULL ? serve_plain(serve, plain, listen_fd, &err) :
				 serve_fastcgi(serve, listen_fd, path, &err);
	if (result != 0)
		log_err("%s", err.text);
	return result == 0 ? 0 : 1;
}
