/* SPDX-License-Identifier: MIT */
/*
 * Which programs there are, with their arguments, their sockets and the user
 * of each.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "prepare.h"
#include "run.h"

/* More than can be on their way while a front is started again. */
#define FRONT_BACKLOG 4096

/* args: up to a NULL; the texts are copied. */
static struct child *
add(struct run *run, enum child_stage stage, const char *name,
    enum account account, const char *const *args)
{
	struct child *child = &run->children[run->count++];

	*child = (struct child){
		.run = run, .stage = stage, .account = account, .pidfd = -1
	};
	(void)snprintf(child->name, sizeof(child->name), "%s", name);
	for (size_t i = 0; args[i] != NULL; i++) {
		assert(i < CHILD_ARGS - 1);
		child->argv[i] = xstrdup(args[i]);
	}
	return child;
}

/* One of ours: <folder>/<program> [-e envfile] [-s slot]; slot may be "". */
static struct child *
add_own(struct run *run, enum child_stage stage, const char *program,
    enum account account, const char *slot)
{
	auto_free char *name = xprintf("%s%s%s", program,
	    *slot != '\0' ? " " : "", slot);
	auto_free char *path = xprintf("%s/%s", run->folder, program);
	const char *args[6] = { path };
	size_t count = 1;

	if (run->env_file != NULL) {
		args[count++] = "-e";
		args[count++] = run->env_file;
	}
	if (*slot != '\0') {
		args[count++] = "-s";
		args[count++] = slot;
	}
	return add(run, stage, name, account, args);
}

/* A socket by which nginx reaches a front: we hold it, so that the program may
 * end and start. */
static int
add_socket(struct child *child, const char *name, int backlog, struct err *err)
{
	const struct run *run = child->run;
	auto_free char *path = config_state_path(run->config, name);
	int fd = fd_listen_unix(path, SOCK_STREAM | SOCK_NONBLOCK, 0660, err);

	if (fd < 0)
		return -1;
	assert(child->fd_count < CHILD_FDS);
	child->fds[child->fd_count++] = fd;
	(void)listen(fd, backlog);
	if (run->separate && lchown(path, 0, run->gids[ACCOUNT_GROUP_WEB]) != 0)
		return err_system(err, "%s", path);
	return 0;
}

/* The programs that answer requests.  il-api has a queue of its own for each of
 * its pools, in their order. */
static int
add_fronts(struct run *run, struct err *err)
{
	const int queue = (int)run->config->api_queue;
	struct child *discord = add_own(run, STAGE_FRONT, "il-fcgi",
	    ACCOUNT_FCGI, "");
	struct child *api = add_own(run, STAGE_FRONT, "il-api", ACCOUNT_API,
	    "");

	if (add_socket(discord, "fcgi.sock", FRONT_BACKLOG, err) != 0 ||
	    add_socket(api, "api.sock", FRONT_BACKLOG, err) != 0 ||
	    add_socket(api, "run.sock", queue, err) != 0 ||
	    add_socket(api, "files.sock", FRONT_BACKLOG, err) != 0 ||
	    add_socket(api, "session.sock", queue, err) != 0)
		return -1;
	if (add_socket(api, "connect.sock", FRONT_BACKLOG, err) != 0)
		return -1;
	return add_socket(api, "mcp.sock", FRONT_BACKLOG, err);
}

/* One host has no other to answer. */
static int
add_node(struct run *run, struct err *err)
{
	struct child *node;

	if (*run->config->nodes == '\0')
		return 0;
	node = add_own(run, STAGE_FRONT, "il-node", ACCOUNT_NODE, "");
	return add_socket(node, "node.sock", FRONT_BACKLOG, err);
}

/* Its socket is ours, as those of the fronts are. */
static void
add_standin(struct run *run)
{
	struct standin *standin = &run->standin;
	auto_free char *commands = config_state_path(run->config,
	    "commands.json");
	auto_free char *history = config_state_path(run->config,
	    "standin/history.db");
	auto_free char *endpoint = xprintf("http://127.0.0.1:%" PRId64
					   "/interactions",
	    run->config->http_port);
	struct child *child;

	child = add(run, STAGE_STANDIN, "stand-in", ACCOUNT_STANDIN,
	    (const char *const[]){ standin_python(), standin->script,
		"--key-file", standin->key_file, "--history", history,
		"--listen-fd", "3", "--endpoint", endpoint, "--commands",
		commands, "--verbose", NULL });
	child->fds[child->fd_count++] = steal_fd(&standin->listen_fd);
}

/* In the order of the start. */
int
plan_make(struct run *run, struct err *err)
{
	auto_free char *conf = config_state_path(run->config, "nginx.conf");
	/* nginx takes a relative one for one below its own folder. */
	auto_free char *full = realpath(conf, NULL);

	run->children = xcalloc((size_t)run->config->workers + 6,
	    sizeof(*run->children));
	(void)add_own(run, STAGE_BROKER, "il-sandboxd", ACCOUNTS, "");
	for (int64_t i = 0; i < run->config->workers; i++) {
		auto_free char *slot = xprintf("%" PRId64, i);

		(void)add_own(run, STAGE_DRAIN, "il-worker", ACCOUNT_WORKER,
		    slot);
	}
	if (add_fronts(run, err) != 0 || add_node(run, err) != 0)
		return -1;
	if (run->standin.port != 0)
		add_standin(run);
	(void)add(run, STAGE_DRAIN, "nginx", ACCOUNT_NGINX,
	    (const char *const[]){ "nginx", "-e", "stderr", "-c",
		full != NULL ? full : conf, NULL });
	return 0;
}
