/* SPDX-License-Identifier: MIT */
#include "master.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/log.h"

#define SOCKET_MODE 0660
#define STEADY_MS 1000 /* one that ends sooner is started again later */

struct master_child {
	size_t socket;
	pid_t pid; /* 0: it does not run */
	int64_t due_ms;
};

/* One that was handed over, or our own. */
static int
open_socket(struct master *master, size_t i, const struct config *config,
    const struct master_socket *socket, bool passed, struct err *err)
{
	auto_free char *path = config_state_path(config, socket->name);
	int fd = SERVE_PASSED_FD + (int)i;

	if (passed && fd_set_nonblock(fd, err) < 0)
		return err_wrap(err, "passed socket");
	if (!passed) {
		fd = fd_listen_unix(path, SOCK_STREAM | SOCK_NONBLOCK,
		    SOCKET_MODE, err);
		if (fd < 0)
			return err_wrap(err, "listen on %s", path);
		master->path[i] = xstrdup(path);
	}
	/* Whoever made it knew nothing of how long its queue is to be. */
	master->listen_fd[i] = fd;
	return listen(fd, socket->backlog) == 0 ?
	    0 :
	    err_system(err, "listen on %s", path);
}

/* They are started by start_children(). */
static void
add_children(struct master *master, size_t socket, size_t count)
{
	master->children = xrealloc(master->children,
	    (master->count + count) * sizeof(*master->children));
	for (size_t i = 0; i < count; i++)
		master->children[master->count++] = (struct master_child){
			.socket = socket
		};
}

int
master_open(struct master *master, const struct config *config,
    const struct master_socket *sockets, size_t count, struct err *err)
{
	bool passed = serve_was_passed((int)count);

	*master = (struct master){ .sockets = count };
	memset(master->listen_fd, 0xff, sizeof(master->listen_fd)); /* -1 */
	for (size_t i = 0; i < count; i++) {
		if (open_socket(master, i, config, &sockets[i], passed, err) !=
		    0) {
			master_close(master);
			return -1;
		}
		add_children(master, i, sockets[i].children);
	}
	return 0;
}

void
master_close(struct master *master)
{
	for (size_t i = 0; i < master->sockets; i++) {
		if (master->path[i] != NULL)
			(void)unlink(master->path[i]);
		free(master->path[i]);
		cleanup_close(&master->listen_fd[i]);
	}
	free(master->children);
	*master = (struct master){ .sockets = 0 };
}

/* In a child: serve its socket, and end.  Never returns. */
static void
become_child(struct master *master, size_t index, pid_t parent, int signal_fd)
{
	size_t socket = master->children[index].socket;
	struct serve serve = {
		.listen_fd = master->listen_fd[socket],
		.path = master->path[socket],
	};

	/* What it holds, a lease or a client's connection, ends with it; or as
	 * soon as the request in hand is answered. */
	if (prctl(PR_SET_PDEATHSIG, master->linger ? SIGTERM : SIGKILL) != 0 ||
	    getppid() != parent)
		_exit(1);
	(void)close(signal_fd);
	for (size_t i = 0; i < master->sockets; i++)
		if (i != socket)
			(void)close(master->listen_fd[i]);
	_exit(master->work(master->arg, &serve, index));
}

/* Start what does not run and is due.  When to look again, or -1. */
static int64_t
start_children(struct master *master, int signal_fd)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t next_ms = -1;
	pid_t parent = getpid();

	for (size_t i = 0; i < master->count; i++) {
		struct master_child *child = &master->children[i];
		pid_t pid;

		if (child->pid != 0)
			continue;
		if (child->due_ms > now_ms) {
			if (next_ms < 0 || child->due_ms < next_ms)
				next_ms = child->due_ms;
			continue;
		}
		child->due_ms = now_ms + STEADY_MS;
		pid = fork();
		if (pid == 0)
			become_child(master, i, parent, signal_fd);
		if (pid < 0)
			log_err("fork: %m");
		else
			child->pid = pid;
	}
	return next_ms;
}

/* How many of ours are left. */
static size_t
reap_children(struct master *master)
{
	size_t left = 0;
	bool lost = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < master->count; i++) {
			if (master->children[i].pid != pid)
				continue;
			master->children[i].pid = 0;
			lost = lost || status != 0;
			if (status != 0)
				log_warn("a child ended: status=%d", status);
		}
	}
	if (lost && master->lost != NULL)
		master->lost(master->arg);
	for (size_t i = 0; i < master->count; i++)
		left += master->children[i].pid != 0 ? 1 : 0;
	return left;
}

static void
signal_children(const struct master *master, int number)
{
	for (size_t i = 0; i < master->count; i++)
		if (master->children[i].pid != 0)
			(void)kill(master->children[i].pid, number);
}

/* True when one of them says to end. */
static bool
read_signals(int signal_fd)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		end = end || info.ssi_signo != SIGCHLD;
	return end;
}

/* The end: nobody new, then what is at hand, then by force. */
static void
stop_children(struct master *master, struct pollfd *p)
{
	int64_t deadline = clock_monotonic_ms() + master->stop_ms;

	/* Nobody new finds the sockets. */
	for (size_t i = 0; i < master->sockets; i++)
		if (master->path[i] != NULL)
			(void)unlink(master->path[i]);
	signal_children(master, SIGTERM);
	if (master->linger)
		return;
	while (reap_children(master) > 0 && clock_monotonic_ms() < deadline) {
		(void)poll(p, 1, clock_poll_timeout(deadline));
		(void)read_signals(p->fd);
	}
	signal_children(master, SIGKILL);
}

int
master_run(struct master *master, struct err *err)
{
	static const int extra[] = { SIGCHLD, 0 };
	auto_close int signal_fd = -1;
	struct pollfd p = { .events = POLLIN };
	int64_t due_ms = master->tick != NULL ? 0 : INT64_MAX;
	bool end = false;

	/* What the children leave behind, sessions, belongs to us. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		return err_system(err, "prctl");
	signal_fd = p.fd = fd_signals(extra, err);
	if (p.fd < 0)
		return -1;
	while (!end) {
		int64_t next_ms = start_children(master, p.fd);

		if (master->tick != NULL && clock_monotonic_ms() >= due_ms) {
			master->tick(master->arg);
			due_ms = clock_monotonic_ms() + master->tick_ms;
		}
		if (next_ms < 0 || next_ms > due_ms)
			next_ms = due_ms;
		if (poll(&p, 1, clock_poll_timeout(next_ms)) < 0 &&
		    errno != EINTR)
			return err_system(err, "poll");
		end = read_signals(p.fd);
		(void)reap_children(master);
	}
	stop_children(master, &p);
	return 0;
}
