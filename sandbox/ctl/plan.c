#include "plan.h"

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

static struct child *
add(struct maker *m, enum child_stage stage, const char *name)
{
	struct child *child = &m->plan->children[m->plan->count++];

	child_init(child, stage, name);
	return child;
}

/* One of ours: <folder>/<program> [-e envfile]. */
static struct child *
add_own(struct maker *m, enum child_stage stage, const char *program)
{
	struct child *child = add(m, stage, program);
	auto_buf struct buf path = BUF_INIT(2 * PATH_MAX);

	buf_addf(&path, "%s/%s", m->folder, program);
	child_arg(child, buf_str(&path));
	if (m->env_file != NULL) {
		child_arg(child, "-e");
		child_arg(child, m->env_file);
	}
	return child;
}

/* It has that user's rights, and no others. */
static void
confine(const struct maker *m, struct child *child, enum account_name name)
{
	child->account = accounts_get(m->accounts, name);
	if (child->account != NULL)
		child->view_fd = m->view_fd;
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
	struct child *child = add_own(m, STAGE_FRONT, program);

	confine(m, child, account);
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

static void
add_workers(struct maker *m, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		struct child *child = add_own(m, STAGE_WORKER, "il-worker");
		char slot[24];

		confine(m, child, ACCOUNT_WORKER);
		(void)snprintf(slot, sizeof(slot), "%lld", (long long)i);
		(void)snprintf(child->name, sizeof(child->name), "il-worker %s",
		    slot);
		child_arg(child, "-s");
		child_arg(child, slot);
	}
}

static void
add_standin(struct maker *m, const struct config *config,
    const struct standin *standin)
{
	struct child *child = add(m, STAGE_STANDIN, "stand-in");
	auto_buf struct buf text = BUF_INIT(8192);
	const char *const fixed[] = { standin_python(), standin->script,
		"--key-file", standin->key_file, "--ready-fd", "3", "--port",
		NULL };

	confine(m, child, ACCOUNT_STANDIN);
	for (int i = 0; fixed[i] != NULL; i++)
		child_arg(child, fixed[i]);
	buf_addf(&text, "%ld", standin->port);
	child_arg(child, buf_str(&text));
	child_arg(child, "--endpoint");
	buf_reset(&text);
	buf_addf(&text, "http://127.0.0.1:%lld/interactions",
	    (long long)config->http_port);
	child_arg(child, buf_str(&text));
	child_arg(child, "--commands");
	buf_reset(&text);
	buf_addf(&text, "%s/commands.json", config->lib_dir);
	child_arg(child, buf_str(&text));
}

static void
add_nginx(struct maker *m, const struct config *config)
{
	struct child *child = add(m, STAGE_NGINX, "nginx");
	auto_free char *conf = config_state_path(config, "nginx.conf");
	auto_free char *full = realpath(conf, NULL);

	confine(m, child, ACCOUNT_NGINX);
	child->death_signal = SIGTERM;
	child_arg(child, "nginx");
	child_arg(child, "-e");
	child_arg(child, "stderr");
	child_arg(child, "-c");
	child_arg(child, full != NULL ? full : conf);
}

int
plan_folder(char folder[static PATH_MAX], struct err *err)
{
	ssize_t len = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	char *slash;

	if (len < 0)
		return err_system(err, "/proc/self/exe");
	folder[len] = '\0';
	slash = strrchr(folder, '/');
	if (slash != NULL)
		*slash = '\0';
	return 0;
}

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
	(void)add_own(&m, STAGE_BROKER, "il-sandboxd");
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
