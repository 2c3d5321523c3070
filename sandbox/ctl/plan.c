/* SPDX-License-Identifier: MIT */
/*
 * Which programs there are, with their arguments, their sockets and the user
 * of each.
 */
#include <assert.h>
#include <fcntl.h>
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

/* One of ours: <folder>/<program> [-e envfile], or [-s slot]. */
static struct child *
add_own(struct run *run, enum child_stage stage, const char *program,
    enum account account, const char *slot)
{
	auto_buf struct buf name = BUF_INIT(64);
	auto_buf struct buf path = BUF_INIT(2 * PATH_MAX);
	const char *args[6] = { NULL };
	size_t count = 1;

	buf_addf(&path, "%s/%s", run->folder, program);
	buf_adds(&name, program);
	args[0] = buf_str(&path);
	if (run->env_file != NULL) {
		args[count++] = "-e";
		args[count++] = run->env_file;
	}
	if (slot != NULL) {
		buf_addf(&name, " %s", slot);
		args[count++] = "-s";
		args[count++] = slot;
	}
	return add(run, stage, buf_str(&name), account, args);
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
	    ACCOUNT_FCGI, NULL);
	struct child *api = add_own(run, STAGE_FRONT, "il-api", ACCOUNT_API,
	    NULL);

	if (add_socket(discord, "fcgi.sock", FRONT_BACKLOG, err) != 0 ||
	    add_socket(api, "api.sock", FRONT_BACKLOG, err) != 0 ||
	    add_socket(api, "run.sock", queue, err) != 0 ||
	    add_socket(api, "files.sock", FRONT_BACKLOG, err) != 0)
		return -1;
	return add_socket(api, "session.sock", queue, err);
}

/* It says on descriptor 3 when it is ready, after each start. */
static int
add_standin(struct run *run, struct err *err)
{
	const struct standin *standin = &run->standin;
	auto_buf struct buf commands = BUF_INIT(8192);
	struct child *child;
	char endpoint[64];
	char port[24];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, "pipe");
	buf_addf(&commands, "%s/commands.json", run->config->lib_dir);
	(void)snprintf(port, sizeof(port), "%ld", standin->port);
	(void)snprintf(endpoint, sizeof(endpoint),
	    "http://127.0.0.1:%" PRId64 "/interactions",
	    run->config->http_port);
	child = add(run, STAGE_STANDIN, "stand-in", ACCOUNT_STANDIN,
	    (const char *const[]){ standin_python(), standin->script,
		"--key-file", standin->key_file, "--ready-fd", "3", "--port",
		port, "--endpoint", endpoint, "--commands", buf_str(&commands),
		NULL });
	run->standin.ready_fd = ends[0];
	child->fds[child->fd_count++] = ends[1];
	return 0;
}

/* In the order of the start. */
int
plan_make(struct run *run, struct err *err)
{
	auto_free char *conf = config_state_path(run->config, "nginx.conf");
	/* nginx takes a relative one for one below its own folder. */
	auto_free char *full = realpath(conf, NULL);

	run->children = xcalloc((size_t)run->config->workers + 5,
	    sizeof(*run->children));
	(void)add_own(run, STAGE_BROKER, "il-sandboxd", ACCOUNTS, NULL);
	for (int64_t i = 0; i < run->config->workers; i++) {
		char slot[24];

		(void)snprintf(slot, sizeof(slot), "%" PRId64, i);
		(void)add_own(run, STAGE_WORKER, "il-worker", ACCOUNT_WORKER,
		    slot);
	}
	if (add_fronts(run, err) != 0 ||
	    (run->standin.port != 0 && add_standin(run, err) != 0))
		return -1;
	(void)add(run, STAGE_NGINX, "nginx", ACCOUNT_NGINX,
	    (const char *const[]){ "nginx", "-e", "stderr", "-c",
		full != NULL ? full : conf, NULL });
	return 0;
}
