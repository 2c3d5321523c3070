/* SPDX-License-Identifier: MIT */
#include "server/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http.h"

#include "base/basics.h"
#include "base/children.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/text.h"

#define PASSED_FD 3 /* the first one that a supervisor has passed */
#define SOCKET_MODE 0660
#define STEADY_MS 1000 /* a child that ends sooner is restarted so much later */
/* Time to answer the requests in the queue after SIGTERM. */
#define DRAIN_MS 2000
#define EVENTS_MAX 3 /* that wake a child */

bool
master_begin(const char *name, int argc, char **argv, struct config *config,
    bool *linger)
{
	const char *flags = linger != NULL ? "ltve:" : "tve:";
	enum log_level level = LOG_LEVEL_INFO;
	const char *env_file = NULL;
	bool right = true;
	bool test = false;
	struct err err;
	int c;

	while ((c = getopt(argc, argv, flags)) != -1) {
		if (c == 'e')
			env_file = optarg;
		else if (c == 't')
			test = true;
		else if (c == 'l' && linger != NULL)
			*linger = true;
		else if (c == 'v')
			level = LOG_LEVEL_DEBUG;
		else
			right = false;
	}
	if (!right || optind != argc) {
		(void)fprintf(stderr, "usage: %s [-%.*s] [-e envfile]\n", name,
		    (int)strcspn(flags, "e"), flags);
		exit(64);
	}
	log_init(name, level);
	if (config_load(config, env_file, &err) < 0)
		log_fatal(78, "%s", err.text);
	return test;
}

/* ---- a child ---- */

/* The requests that are answered together. */
struct batch {
	const struct serve *serve;
	struct http_request **requests;
	size_t count;
	size_t most;
	int listen_fd;
	void (*plain)(void *arg, int fd); /* of the socket */
	bool more; /* others waited when it was answered */
};

/* Make room for the index-th request. */
static void
batch_renew(struct batch *batch, size_t index)
{
	struct http_request *req = xcalloc(1, sizeof(*req));

	http_init(req, batch->listen_fd);
	req->hasty = batch->serve->settle != NULL;
	batch->requests[index] = req;
}

/* Accept a request.  False: there is none. */
static bool
batch_accept(struct batch *batch)
{
	struct http_request *req = batch->requests[batch->count];

	if (!http_accept(req))
		return false;
	if (batch->serve->answer(batch->serve->arg, req, batch->count))
		batch->count++;
	else
		http_finish(req);
	return true;
}

/* Answer together the requests that have come.  False: there were none. */
static bool
serve_some(struct batch *batch)
{
	const struct serve *serve = batch->serve;
	int64_t until_ms = clock_monotonic_ms() + SERVE_GATHER_MS;
	struct pollfd others = { .fd = batch->listen_fd, .events = POLLIN };
	bool some = batch_accept(batch);

	while (some && batch->count < batch->most &&
	    clock_monotonic_ms() < until_ms && batch_accept(batch))
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

/* The time at which the requests that are held back are due. */
static int64_t
batch_due_ms(const struct batch *batch)
{
	const struct serve *serve = batch->serve;

	return serve->due_ms != NULL ? serve->due_ms(serve->arg) : INT64_MAX;
}

/* One descriptor for all that the loop waits for.  Other processes serve the
 * socket, too: a client that connects wakes one idle process, not all. */
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

/* Serve a client that does not speak FastCGI.  A process that cannot accept
 * ends, as in http_accept(). */
static void
serve_plain(const struct batch *batch)
{
	auto_close int fd = accept4(batch->listen_fd, NULL, NULL,
	    SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		batch->plain(batch->serve->arg, fd);
	/* another one may have been faster, or the client is gone */
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		log_fatal(1, "accept4: %m");
}

/* Until a signal comes, or waiting itself fails. */
static int
serve_loop(struct batch *batch, struct err *err)
{
	const struct serve *serve = batch->serve;
	auto_close int signal_fd = fd_signals(false, err);
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
		/* held requests whose answer has come go first */
		if (events_came || clock_monotonic_ms() >= due_ms)
			serve->events(serve->arg);
		if (came && batch->plain != NULL)
			serve_plain(batch);
		else if (came)
			(void)serve_some(batch);
	}
}

/* Until a signal comes; then what is in the queue.  path: of our own socket, or
 * NULL. */
static int
serve_until_signal(const struct serve *serve, const struct serve_socket *socket,
    int listen_fd, const char *path, struct err *err)
{
	struct batch batch = { .serve = serve,
		.listen_fd = listen_fd,
		.plain = socket->plain,
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
		/* No new client finds the socket; those that have connected get
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

/* ---- the first process ---- */

struct master {
	const struct serve *serve;
	int listen_fd[SERVE_SOCKETS_MAX];
	char *path[SERVE_SOCKETS_MAX]; /* our own; NULL when handed over */
	struct children children;
};

/* Did a supervisor pass us so many sockets? */
static bool
was_passed(int64_t count)
{
	const char *fds = getenv("LISTEN_FDS");
	const char *pid = getenv("LISTEN_PID");
	int64_t value;

	return fds != NULL && pid != NULL &&
	    text_parse_int(fds, 1, INT32_MAX, &value) && value == count &&
	    text_parse_int(pid, 1, INT32_MAX, &value) && value == getpid();
}

/* Use the sockets that were handed over, or open our own.  The children are
 * started later. */
static int
open_sockets(struct master *master, const struct config *config,
    struct err *err)
{
	const struct serve *serve = master->serve;
	bool passed = was_passed((int64_t)serve->socket_count);
	struct children *children = &master->children;
	size_t count = 0;

	for (size_t i = 0; i < serve->socket_count; i++) {
		const struct serve_socket *socket = &serve->sockets[i];
		auto_free char *path = config_state_path(config, socket->name);
		int fd = PASSED_FD + (int)i;

		if (passed && fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
			return err_system(err,
			    "passed socket: set a descriptor nonblocking");
		if (!passed) {
			fd = fd_listen_unix(path, SOCK_STREAM | SOCK_NONBLOCK,
			    SOCKET_MODE, err);
			if (fd < 0)
				return err_wrap(err, "listen on %s", path);
			master->path[i] = xstrdup(path);
		}
		/* The supervisor that made the socket did not know the length
		 * of its queue. */
		if (listen(fd, socket->backlog) != 0)
			return err_system(err, "listen on %s", path);
		master->listen_fd[i] = fd;
		count += socket->children;
		children->of = xrealloc(children->of,
		    count * sizeof(*children->of));
		while (children->count < count)
			children->of[children->count++] = (struct child){
				.name = "a child", .end_signal = SIGTERM
			};
	}
	return 0;
}

/* From here on no new client finds the sockets. */
static void
remove_sockets(void *arg)
{
	struct master *master = arg;

	for (size_t i = 0; i < SERVE_SOCKETS_MAX; i++) {
		if (master->path[i] != NULL)
			(void)unlink(master->path[i]);
		free(master->path[i]);
		master->path[i] = NULL;
	}
}

/* Be the index-th child: serve its socket until a signal says to end.  Never
 * returns. */
static void
become_child(void *arg, size_t index, pid_t parent)
{
	const struct master *master = arg;
	const struct serve *serve = master->serve;
	const struct serve_socket *socket = serve->sockets;
	size_t left = index; /* children of this socket, and of later ones */
	struct err err;
	int listen_fd;
	int result;

	while (left >= socket->children)
		left -= socket++->children;
	listen_fd = master->listen_fd[socket - serve->sockets];
	/* A child ends with the master, and so do its lease and its client's
	 * connection.  With linger it ends once the request in hand is
	 * answered. */
	if (prctl(PR_SET_PDEATHSIG, serve->linger ? SIGTERM : SIGKILL) != 0 ||
	    getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < serve->socket_count; i++)
		if (master->listen_fd[i] != listen_fd)
			(void)close(master->listen_fd[i]);
	if (serve->start != NULL)
		serve->start(serve->arg, index);
	result = serve_until_signal(serve, socket, listen_fd,
	    master->path[socket - serve->sockets], &err);
	if (result != 0)
		log_err("%s", err.text);
	_exit(result == 0 ? 0 : 1);
}

static void
master_note_end(void *arg, size_t index, const siginfo_t *end)
{
	const struct serve *serve = ((const struct master *)arg)->serve;
	bool right = end->si_code == CLD_EXITED && end->si_status == 0;

	(void)index;
	if (!right && serve->lost != NULL)
		serve->lost(serve->arg);
}

/* Requests are answered while any child moves. */
static void
master_tick(void *arg)
{
	const struct master *master = arg;

	for (size_t i = 0; i < master->children.count; i++)
		if (!master->children.of[i].stopped) {
			master->serve->tick(master->serve->arg);
			return;
		}
}

/* At the end no new clients come, then the requests in hand are answered. */
int
master_run(const struct serve *serve, const struct config *config,
    struct err *err)
{
	const struct children_stage end = { serve->stop_ms, INT_MAX };
	struct master master = {
		.serve = serve,
		.children = {
			.stages = &end,
			.stage_count = 1,
			.first_ms = STEADY_MS,
			.most_ms = STEADY_MS,
			.steady_ms = STEADY_MS,
			.arg = &master,
			.become = become_child,
			.ended = master_note_end,
			.tick = master_tick,
			.tick_ms = serve->tick_ms,
			.signalled = remove_sockets,
			.linger = serve->linger,
		},
	};
	int result = open_sockets(&master, config, err);

	if (result == 0) {
		http_prepare();
		log_info("ready");
		result = children_run(&master.children, err);
	}
	remove_sockets(&master);
	free(master.children.of);
	return result;
}
