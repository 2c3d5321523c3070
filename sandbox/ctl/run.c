/* SPDX-License-Identifier: MIT */
/*
 * What must be right before `ilctl run` starts anything; then supervise.c
 * takes over.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
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
#include "account.h"
#include "child.h"
#include "ctl.h"
#include "estate.h"
#include "nginx_conf.h"
#include "plan.h"
#include "settings.h"
#include "standin.h"
#include "supervise.h"
#include "view.h"

/* Everything that has to be right before a program is started. */
struct run {
	struct config *config;
	int lock_fd;
	struct standin standin;
	struct plan plan;
	struct accounts accounts;
	int view_fd;
	/* Open for as long as we are: SQLite's -wal and -shm stay, which the
	 * programs could not make in a folder that is not theirs. */
	struct db *database;
};

/* What stands in the state folder for a running program. */
static void
remove_traces(const struct config *config)
{
	auto_free char *wake = config_state_path(config, "wake");

	if (unlink(wake) != 0 && errno != ENOENT)
		log_warn("%s: %m", wake);
	for (int i = 0; supervise_signs[i] != NULL; i++) {
		auto_free char *path = config_state_path(config,
		    supervise_signs[i]);

		if (unlink(path) != 0 && errno != ENOENT)
			log_warn("%s: %m", path);
	}
}

/* Two of us in one folder would take each other's sockets.  The lock goes with
 * us, whatever ends us. */
static int
take_lock(struct run *run, struct err *err)
{
	auto_free char *path = config_state_path(run->config, "run.lock");

	run->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0640);
	if (run->lock_fd < 0)
		return err_system(err, "%s", path);
	if (flock(run->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_system(err, "%s", path);
	return err_set(err, ERR_CONFIG,
	    "IL_STATE_DIR: another ilctl runs in %s", run->config->state_dir);
}

/* nginx would say so only after everything else was started. */
static int
write_nginx_conf(const struct run *run, struct err *err)
{
	struct nginx_conf conf = {
		.state_dir = run->config->state_dir,
		.lib_dir = run->config->lib_dir,
		.http_port = (long)run->config->http_port,
		.standin_port = run->standin.port,
	};

	if (!standin_port_is_free(conf.http_port))
		return err_set(err, ERR_CONFIG,
		    "IL_HTTP_PORT: something else "
		    "listens on 127.0.0.1:%ld",
		    conf.http_port);
	return nginx_conf_write(run->config, &conf, err);
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
	char folder[PATH_MAX];
	char *files[] = { database, tokens, script };
	const char *paths[8] = { config->state_dir, config->lib_dir, folder };
	size_t count = 3;

	if (plan_folder(folder, err) != 0)
		return -1;
	if (*config->api_files != '\0')
		paths[count++] = config->api_files;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i] != NULL && *files[i] != '\0')
			paths[count++] = dirname(files[i]);
	}
	return view_open(&run->view_fd, paths, count, err);
}

/* As root: for each program what is its own, and no more. */
static int
share(struct run *run, const char **env_file, struct err *err)
{
	if (!run->accounts.separate)
		return 0;
	run->database = db_open(run->config->database, DB_READER, err);
	if (run->database == NULL ||
	    estate_share(run->config, &run->accounts, err) != 0 ||
	    open_view(run, err) != 0 ||
	    settings_export(run->config, *env_file, err) != 0)
		return -1;
	*env_file = NULL;
	return 0;
}

/* Everything that can be wrong, before anything is started. */
static int
prepare(struct run *run, const char *env_file, struct err *err)
{
	accounts_find(&run->accounts, run->config->http_port);
	/* The folders first, then what stands in them, then who may reach it;
	 * nothing is touched while another one runs here. */
	if (fd_make_dirs(run->config->state_dir, 0750, err) != 0 ||
	    fd_make_dirs(run->config->base_dir, 0750, err) != 0 ||
	    take_lock(run, err) != 0)
		return -1;
	remove_traces(run->config);
	if (estate_prepare(run->config, &run->accounts, err) != 0 ||
	    ctl_migrate_database(run->config, err) < 0 ||
	    settings_resolve(run->config, err) != 0 ||
	    standin_prepare(&run->standin, run->config, err) != 0 ||
	    write_nginx_conf(run, err) != 0 || share(run, &env_file, err) != 0)
		return -1;
	return plan_make(&run->plan, run->config, env_file, &run->standin,
	    &run->accounts, run->view_fd, err);
}

/* The stand-in says on a pipe that it accepts connections. */
static int
open_standin_pipe(struct run *run, struct err *err)
{
	int ends[2];

	for (size_t i = 0; i < run->plan.count; i++) {
		if (run->plan.children[i].stage != STAGE_STANDIN)
			continue;
		if (pipe2(ends, O_CLOEXEC) != 0)
			return err_system(err, "pipe");
		run->plan.children[i].ready_fd = ends[1];
		return ends[0];
	}
	return -1;
}

/* The end of a start: where to go now. */
static void
announce(void *arg)
{
	const struct run *run = arg;
	long port = (long)run->config->http_port;

	printf("\nInline is ready.  Ctrl-C ends everything.\n\n");
	if (run->standin.port != 0)
		printf("  chat page     http://127.0.0.1:%ld/\n", port);
	printf("  interactions  http://127.0.0.1:%ld/interactions\n", port);
	printf("  HTTP APIs     http://127.0.0.1:%ld/docs\n", port);
	printf("  health        http://127.0.0.1:%ld/health\n", port);
	printf("  state         %s\n\n", run->config->state_dir);
	if (run->standin.port != 0)
		printf("DISCORD_PUBLIC_KEY is not set: a stand-in on this "
		       "machine plays Discord.\nOpen the chat page and type "
		       "/il create, then /il py print(1).\n\n");
	(void)fflush(stdout);
}

/* From here on nothing fails without ending the others. */
static int
watch(struct run *run, struct err *err)
{
	static const int extra[] = { SIGHUP, 0 };
	auto_close int signals_fd = fd_signals(extra, err);
	int standin_fd;
	int code;

	if (signals_fd < 0)
		return ctl_fail("run", err);
	err->code = ERR_NONE;
	standin_fd = open_standin_pipe(run, err);
	if (err->code != ERR_NONE)
		return ctl_fail("run", err);
	code = supervise(&run->plan, run->config, signals_fd, standin_fd,
	    announce, run);
	remove_traces(run->config);
	log_info("ended");
	return code;
}

/* The environment file may be named before or after `run`. */
int
ctl_run(struct ctl *ctl, int argc, char **argv)
{
	struct run run = {
		.config = &ctl->config, .lock_fd = -1, .view_fd = -1
	};
	struct err err = { 0 };
	const char *env_file = ctl->env_file;
	int code;

	if (argc == 3 && strcmp(argv[1], "-e") == 0 && env_file == NULL) {
		env_file = argv[2];
		config_release(&ctl->config);
		if (config_load(&ctl->config, env_file, &err) != 0)
			return ctl_fail("run", &err);
	} else if (argc != 1) {
		return ctl_usage("run [-e envfile]");
	}
	(void)umask(0007);
	code = prepare(&run, env_file, &err);
	code = code == 0 ? watch(&run, &err) : ctl_fail("run", &err);
	plan_release(&run.plan);
	standin_release(&run.standin);
	db_close(run.database);
	cleanup_close(&run.view_fd);
	cleanup_close(&run.lock_fd);
	return code;
}
