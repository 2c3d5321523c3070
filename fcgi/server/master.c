/* SPDX-License-Identifier: MIT */
#include "server/master.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/serve.h"

#include "base/basics.h"
#include "base/children.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/text.h"

#define PASSED_FD 3 /* the first one that a supervisor has passed */
#define SOCKET_MODE 0660
#define STEADY_MS 1000 /* a child that ends sooner is restarted so much later */

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
		if (!master->children.of[i].stopped &&
		    master->serve->tick != NULL) {
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
		/* The children share what libfcgi sets up once. */
		http_prepare();
		log_info("ready");
		result = children_run(&master.children, err);
	}
	remove_sockets(&master);
	free(master.children.of);
	return result;
}
