/* SPDX-License-Identifier: MIT */
/*
 * Which programs there are, with their arguments, their sockets and the user
 * of each.
 */
#include "plan.h"

#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "account.h"
#include "child.h"
#include "standin.h"

/* More than can be on their way while a front is started again. */
#define FRONT_BACKLOG 4096

struct maker {
	struct plan *plan;
	const char *env_file;
	const struct accounts *accounts;
	int view_fd;
	char folder[PATH_MAX]; /* of the programs */
};

/* A program with the rights of that user and no others; ACCOUNTS: with ours. */
static struct child *
add(struct maker *m, enum child_stage stage, const char *name,
    enum account_name account)
{
	struct child *child = &m->plan->children[m->plan->count++];

	child_init(child, stage, name);
	if (account != ACCOUNTS)
		child->account = accounts_get(m->accounts, account);
	if (child->account != NULL)
		child->view_fd = m->view_fd;
	return child;
}

/* One of ours: <folder>/<program> [-e envfile]. */
static struct child *
add_own(struct maker *m, enum child_stage stage, const char *program,
    enum account_name account)
{
	struct child *child = add(m, stage, program, account);
	auto_buf struct buf path = BUF_INIT(2 * PATH_MAX);

	buf_addf(&path, "%s/%s", m->folder, program);
	child_arg(child, buf_str(&path));
	if (m->env_file != NULL)
		child_args(child,
		    (const char *const[]){ "-e", m->env_file, NULL });
	return child;
}

struct plan_socket {
	const char *name;
	int backlog;
};

/* One that nginx reaches: we hold its sockets, so that it may end and start. */
static int
add_front(struct maker *m, const struct config *config, const char *program,
    enum account_name account, const struct plan_socket *sockets, int count,
    struct err *err)
{
	struct child *child = add_own(m, STAGE_FRONT, program, account);

	for (int i = 0; i < count; i++) {
		auto_free char *path = config_state_path(config,
		    sockets[i].name);
		int fd = fd_listen_unix(path, SOCK_STREAM | SOCK_NONBLOCK, 0660,
		    err);

		if (fd < 0)
			return -1;
		if (m->accounts->separate &&
		    lchown(path, 0, m->accounts->groups[ACCOUNT_GROUP_WEB]) !=
			0) {
			(void)close(fd);
			return err_system(err, "%s", path);
		}
		(void)listen(fd, sockets[i].backlog);
		child->listen_fd[child->sockets++] = fd;
	}
	return 0;
}

/* The programs that answer requests, with all of their sockets. */
static int
add_fronts(struct maker *m, const struct config *config, struct err *err)
{
	/* A queue of its own for each pool of il-api, in its order. */
	const int queue = (int)config->api_queue;
	const struct plan_socket discord[] = { { "fcgi.sock", FRONT_BACKLOG } };
	const struct plan_socket api[] = { { "api.sock", FRONT_BACKLOG },
		{ "run.sock", queue }, { "files.sock", FRONT_BACKLOG },
		{ "session.sock", queue } };

	if (add_front(m, config, "il-fcgi", ACCOUNT_FCGI, discord, 1, err) != 0)
		return -1;
	return add_front(m, config, "il-api", ACCOUNT_API, api, 4, err);
}

/* Each has a slot of its own, from 0 on. */
static void
add_workers(struct maker *m, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		struct child *child = add_own(m, STAGE_WORKER, "il-worker",
		    ACCOUNT_WORKER);
		char slot[24];

		(void)snprintf(slot, sizeof(slot), "%lld", (long long)i);
		(void)snprintf(child->name, sizeof(child->name), "il-worker %s",
		    slot);
		child_args(child, (const char *const[]){ "-s", slot, NULL });
	}
}

/* It says on descriptor 3 when it is ready. */
static void
add_standin(struct maker *m, const struct config *config,
    const struct standin *standin)
{
	struct child *child = add(m, STAGE_STANDIN, "stand-in",
	    ACCOUNT_STANDIN);
	auto_buf struct buf commands = BUF_INIT(8192);
	char endpoint[64];
	char port[24];

	buf_addf(&commands, "%s/commands.json", config->lib_dir);
	(void)snprintf(port, sizeof(port), "%ld", standin->port);
	(void)snprintf(endpoint, sizeof(endpoint),
	    "http://127.0.0.1:%lld/interactions", (long long)config->http_port);
	child_args(child,
	    (const char *const[]){ standin_python(), standin->script,
		"--key-file", standin->key_file, "--ready-fd", "3", "--port",
		port, "--endpoint", endpoint, "--commands", buf_str(&commands),
		NULL });
}

/* By its full path: nginx takes a relative one for one below its own folder. */
static void
add_nginx(struct maker *m, const struct config *config)
{
	struct child *child = add(m, STAGE_NGINX, "nginx", ACCOUNT_NGINX);
	auto_free char *conf = config_state_path(config, "nginx.conf");
	auto_free char *full = realpath(conf, NULL);

	child->death_signal = SIGTERM;
	child_args(child,
	    (const char *const[]){ "nginx", "-e", "stderr", "-c",
		full != NULL ? full : conf, NULL });
}

int
plan_folder(char folder[static PATH_MAX], struct err *err)
{
	ssize_t len = readlink("/proc/self/exe", folder, PATH_MAX - 1);

	if (len < 0)
		return err_system(err, "/proc/self/exe");
	folder[len] = '\0';
	(void)dirname(folder);
	return 0;
}

/* In the order of the start. */
int
plan_make(struct plan *plan, const struct config *config, const char *env_file,
    const struct standin *standin, const struct accounts *accounts, int view_fd,
    struct err *err)
{
	struct maker m = { .plan = plan,
		.env_file = env_file,
		.accounts = accounts,
		.view_fd = view_fd };

	*plan = (struct plan){ 0 };
	if (plan_folder(m.folder, err) != 0)
		return -1;
	plan->children = xcalloc((size_t)config->workers + 5,
	    sizeof(*plan->children));
	(void)add_own(&m, STAGE_BROKER, "il-sandboxd", ACCOUNTS);
	add_workers(&m, config->workers);
	if (add_fronts(&m, config, err) != 0)
		return -1;
	if (standin->port != 0)
		add_standin(&m, config, standin);
	add_nginx(&m, config);
	return 0;
}

void
plan_release(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		child_release(&plan->children[i]);
	free(plan->children);
}
