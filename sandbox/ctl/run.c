/* SPDX-License-Identifier: MIT */
/*
 * What must be right before `ilctl run` starts anything; then supervise.c
 * takes over.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../store/db.h"
#include "ctl.h"
#include "prepare.h"

/* Two of us in one folder would take each other's sockets.  The lock goes with
 * us, whatever ends us. */
static int
take_lock(struct run *run, struct err *err)
{
	auto_free char *path = config_state_path(run->config, "run.lock");

	run->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0640);
	if (run->lock_fd >= 0 && flock(run->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (run->lock_fd < 0 || errno != EWOULDBLOCK)
		return err_system(err, "%s", path);
	return err_set(err, ERR_CONFIG,
	    "IL_STATE_DIR: another ilctl runs in %s", run->config->state_dir);
}

/* nginx would say so only after everything else was started. */
static int
check_port(long port, struct err *err)
{
	auto_close int fd = standin_listen(port);

	return fd >= 0 ? 0 :
			 err_set(err, ERR_CONFIG,
			     "IL_HTTP_PORT: something else listens on "
			     "127.0.0.1:%ld",
			     port);
}

/* What programs that are not root have to reach. */
static int
open_view(struct run *run, struct err *err)
{
	const struct config *config = run->config;
	auto_free char *database = xstrdup(config->database);
	auto_free char *tokens = xstrdup(config->api_tokens_file);
	auto_free char *script = run->standin.script != NULL ?
	    realpath(run->standin.script, NULL) :
	    NULL;
	auto_free char *nodes = xstrdup(config->nodes);
	auto_free char *nodes_key = xstrdup(config->nodes_key_file);
	auto_free char *libre = xstrdup(config->librechat_keys_file);
	char *files[] = { database, tokens, script, nodes, nodes_key, libre };
	const char *paths[11] = { config->state_dir, config->lib_dir,
		run->folder, config->api_files };
	size_t count = 4;

	if (*config->nodes != '\0') /* il-node writes there */
		paths[count++] = config->base_dir;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i] != NULL && *files[i] != '\0')
			paths[count++] = dirname(files[i]);
	}
	return view_open(&run->view_fd, paths, count, err);
}

/* As root: for each program what is its own, and no more. */
static int
share(struct run *run, struct err *err)
{
	run->database = db_open(run->config->database, DB_READER, err);
	if (run->database == NULL || estate_share(run, err) != 0 ||
	    open_view(run, err) != 0 ||
	    settings_export(run->config, run->env_file, err) != 0)
		return -1;
	run->env_file = NULL;
	return 0;
}

/* Where the other programs are: beside this one, or in ../sbin, where they are
 * installed. */
static int
find_programs(struct run *run, struct err *err)
{
	auto_free char *beside = NULL;
	auto_free char *installed = NULL;

	if (readlink("/proc/self/exe", run->folder, PATH_MAX - 1) < 0)
		return err_system(err, "/proc/self/exe");
	(void)dirname(run->folder);
	beside = xprintf("%s/il-fcgi", run->folder);
	installed = xprintf("%s/../sbin", run->folder);
	if (access(beside, X_OK) != 0 &&
	    realpath(installed, run->folder) == NULL)
		return err_system(err, "%s", installed);
	return 0;
}

/* Everything that can be wrong, before anything is started. */
static int
prepare(struct run *run, struct err *err)
{
	account_find(run);
	/* The folders first, then what stands in them, then who may reach it;
	 * nothing is touched while another one runs here. */
	if (find_programs(run, err) != 0 ||
	    fd_make_dirs(run->config->state_dir, 0750, err) != 0 ||
	    fd_make_dirs(run->config->base_dir, 0750, err) != 0 ||
	    take_lock(run, err) != 0)
		return -1;
	supervise_clear(run->config);
	if (estate_prepare(run, err) != 0 ||
	    ctl_migrate_database(run->config, err) < 0 ||
	    db_claim(run->config, err) != 0 ||
	    settings_resolve(run->config, err) != 0 ||
	    standin_prepare(&run->standin, run->config, err) != 0 ||
	    check_port((long)run->config->http_port, err) != 0 ||
	    nginx_conf_write(run->config, run->standin.port, err) != 0 ||
	    (run->standin.port != 0 && commands_write(run->config, err) != 0) ||
	    (run->separate && share(run, err) != 0))
		return -1;
	return plan_make(run, err);
}

/* The programs themselves have ended by then. */
static void
release(struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		struct child *child = &run->children[i];

		for (char **arg = child->argv; *arg != NULL; arg++)
			free(*arg);
		while (child->fd_count > 0)
			(void)close(child->fds[--child->fd_count]);
	}
	free(run->children);
	free(run->standin.script);
	free(run->standin.key_file);
	cleanup_close(&run->standin.listen_fd);
	db_close(run->database);
	cleanup_close(&run->inotify_fd);
	cleanup_close(&run->view_fd);
	cleanup_close(&run->lock_fd);
}

/* The environment file may be named before or after `run`; the one that is
 * named after it counts. */
int
ctl_run(struct ctl *ctl)
{
	struct run run = { .config = &ctl->config,
		.env_file = ctl->env_file,
		.lock_fd = -1,
		.standin = { .listen_fd = -1 },
		.view_fd = -1,
		.inotify_fd = -1 };
	struct err err = { 0 };
	int code;

	if (ctl->argc == 3 && strcmp(ctl->argv[1], "-e") == 0) {
		run.env_file = ctl->argv[2];
		config_release(&ctl->config);
		if (config_load(&ctl->config, run.env_file, &err) != 0)
			return ctl_fail(ctl->argv[0], &err);
	} else if (ctl->argc != 1) {
		return CTL_MISUSED;
	}
	(void)umask(0007);
	if (prepare(&run, &err) == 0) {
		code = supervise(&run);
		supervise_clear(run.config);
		log_info("ended");
	} else {
		code = ctl_fail(ctl->argv[0], &err);
	}
	release(&run);
	return code;
}
