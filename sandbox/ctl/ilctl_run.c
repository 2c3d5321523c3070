/* SPDX-License-Identifier: MIT */
/*
 * Preparations of `ilctl run`: settings, the stand-in for Discord, nginx's
 * configuration, and the list of the programs with their arguments, sockets and
 * users.  Then child.c takes over.  Other commands learn here whether it
 * runs, and where nginx listens.
 */
#include "ctl/ilctl_run.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "store/db.h"

#define ENV_FILE_MAX (1 << 20)
#define PORTS_TRIED 20
#define ANSWER_MS 10000
#define BACKLOG 1024
#define CONF_MAX (256 << 10)
#define PORT_SIZE 8
/* More connections than can come while a front is started again. */
#define FRONT_BACKLOG 4096

/* ---- settings ---- */

static const struct {
	const char *key;
	size_t field;
	bool is_file;
} paths[] = {
	{ "IL_STATE_DIR", offsetof(struct config, state_dir), false },
	{ "IL_BASE_DIR", offsetof(struct config, base_dir), false },
	{ "IL_TUNE_LIB_DIR", offsetof(struct config, lib_dir), false },
	{ "IL_DATABASE", offsetof(struct config, database), true },
	{ "IL_NODES", offsetof(struct config, nodes), true },
	{ "IL_NODES_KEY_FILE", offsetof(struct config, nodes_key_file), true },
	{ "IL_API_FILES", offsetof(struct config, api_files), false },
	{ "IL_API_TOKENS_FILE", offsetof(struct config, api_tokens_file),
	    true },
	{ "IL_LIBRECHAT_KEYS_FILE",
	    offsetof(struct config, librechat_keys_file), true },
};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

static char **
field(struct config *config, size_t i)
{
	return (char **)(void *)((char *)config + paths[i].field);
}

/* Paths in the configuration that are links, or lead over links, become those
 * they lead to.  The folders must be there.  A file's path is resolved up to
 * its folder: the file may not be there, and its reader judges a link in its
 * place. */
static int
settings_resolve(struct config *config, struct err *err)
{
	for (size_t i = 0; i < PATHS; i++) {
		char **path = field(config, i);
		auto_free char *copy = xstrdup(*path);
		const char *folder = copy;
		const char *name = "";
		char real[PATH_MAX];
		char *resolved;

		if (**path == '\0')
			continue;
		if (paths[i].is_file) {
			folder = dirname(copy);
			name = strrchr(*path, '/');
			assert(name != NULL); /* config.c makes them absolute */
		}
		if (realpath(folder, real) == NULL)
			return err_system(err, "%s", folder);
		resolved = xprintf("%s%s", real, name);
		free(*path);
		*path = resolved;
	}
	return 0;
}

/* Put a line of an env file into our environment, whose own values win, empty
 * ones too. */
static int
settings_set(void *arg, const char *key, const char *value, struct err *err)
{
	(void)arg;
	return setenv(key, value, 0) == 0 ? 0 : err_system(err, "setenv");
}

/* The programs get all settings by their environment, as from systemd.  A
 * program that is not root could neither read root's env file nor resolve a
 * relative path.  The environment's own values come first, then those of the
 * file, then the resolved paths. */
static int
settings_export(struct config *config, const char *env_file, struct err *err)
{
	/* Empty ones win over what a file said. */
	const char *const others[][2] = {
		{ "IL_PIP_CA_BUNDLE", config->pip_ca_bundle },
		{ "IL_ENV_FILE", "" },
		{ "DISCORD_TOKEN_FILE", "" },
	};
	auto_buf struct buf text = BUF_INIT(ENV_FILE_MAX);

	if (env_file == NULL)
		env_file = getenv("IL_ENV_FILE");
	if (env_file != NULL && *env_file != '\0' &&
	    (file_read(env_file, &text, err) != 0 ||
		envfile_parse(&text, env_file, settings_set, NULL, err) != 0))
		return -1;
	for (size_t i = 0; i < PATHS; i++)
		if (setenv(paths[i].key, *field(config, i), 1) != 0)
			return err_system(err, "setenv");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (setenv(others[i][0], others[i][1], 1) != 0)
			return err_system(err, "setenv");
	return 0;
}

/* ---- the stand-in ---- */

static const char *const keys[] = { "DISCORD_PUBLIC_KEY",
	"DISCORD_APPLICATION_ID", "DISCORD_TOKEN", "IL_TUNE_DISCORD_API_BASE",
	NULL };

/* All four keys become the stand-in's, and none stays the caller's. */
static int
standin_set_environment(struct buf *text, struct err *err)
{
	for (int i = 0; keys[i] != NULL; i++)
		(void)unsetenv(keys[i]);
	/* An empty value wins over the env file's. */
	(void)setenv("DISCORD_TOKEN_FILE", "", 1);
	if (envfile_parse(text, "stand-in", settings_set, NULL, err) != 0)
		return -1;
	for (int i = 0; keys[i] != NULL; i++) {
		if (getenv(keys[i]) == NULL)
			return err_set(err, ERR_SYSTEM,
			    "the stand-in tells no %s", keys[i]);
	}
	return 0;
}

/* The interpreter that it runs on: the distribution's, which has the packages
 * that `make deps` installs, before another one on PATH. */
static const char *
standin_python(void)
{
	static const char own[] = "/usr/bin/python3";

	return access(own, X_OK) == 0 ? own : "python3";
}

/* The stand-in makes its keys when they are not there yet, and prints them. */
static int
standin_ask(const struct standin *standin, struct err *err)
{
	auto_free char *port = xprintf("%ld", standin->port);
	const char *const argv[] = { standin_python(), standin->script,
		"--print-env", "--key-file", standin->key_file, "--port", port,
		NULL };
	struct process_spec spec = {
		.argv = argv, .output_max = 65536, .timeout_ms = ANSWER_MS
	};
	auto_result struct process_result result = { 0 };

	if (process_run(&spec, &result, err) != 0)
		return err_wrap(err, "stand-in");
	return process_succeeded(&result) ?
	    standin_set_environment(&result.out, err) :
	    err_set(err, ERR_SYSTEM, "stand-in: %s",
		process_describe(&result).text);
}

/* Listen on this TCP port of 127.0.0.1; -1 when somebody else does. */
static int
standin_listen(long port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fd, BACKLOG) != 0)
		return -1;
	return steal_fd(&fd);
}

/* Find the stand-in, and choose the first port above ours that is free.  Its
 * keys go into our environment, from which the other programs take them.  With
 * a public key configured there is none. */
static int
standin_prepare(struct standin *standin, const struct config *config,
    struct err *err)
{
	if (*config->discord_public_key != '\0')
		return 0;
	standin->script = xprintf("%s/standin/standin.py", config->lib_dir);
	if (access(standin->script, R_OK) != 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY is not "
		    "set, and the stand-in for Discord comes only with the "
		    "source");
	standin->key_file = config_state_path(config, "standin.key");
	standin->port = (long)config->http_port;
	for (int i = 0;
	     i < PORTS_TRIED && standin->listen_fd < 0 && standin->port < 65535;
	     i++)
		standin->listen_fd = standin_listen(++standin->port);
	if (standin->listen_fd < 0)
		return err_set(err, ERR_CONFIG,
		    "IL_HTTP_PORT: no free port "
		    "above it for the stand-in");
	return standin_ask(standin, err);
}

/* ---- nginx ---- */

/* Lines for geo: requests from the host (1) must name this machine, those from
 * a trusted network (2) may use any name. */
static const char *
near_fill(struct buf *near, const struct config *config)
{
	const char *network = config->http_trust;

	if (*config->http_gateway != '\0')
		buf_addf(near, "%s 1;", config->http_gateway);
	while (*network != '\0' && strcmp(network, "none") != 0) {
		size_t len = strcspn(network, ",");

		buf_addf(near, "%.*s 2;", (int)len, network);
		network += len + (network[len] == ',');
	}
	return buf_str(near);
}

int
nginx_conf_fill(struct buf *out, const char *template,
    const struct config *config, long standin_port, struct err *err)
{
	auto_buf struct buf nodes = BUF_INIT(NODES_CONF_MAX);
	const int nodes_known = nodes_conf_add(&nodes, config, err);
	auto_free char *port = xprintf("%" PRId64, config->http_port);
	auto_free char *standin = xprintf("%ld", standin_port);
	/* 0 would be for ever */
	auto_free char *stop = xprintf("%" PRId64 "ms", config->stop_ms + 1);
	auto_buf struct buf near = BUF_INIT(CONF_MAX);
	const bool alone = *config->http_gateway == '\0' &&
	    *config->http_trust == '\0';
	const struct nginx_name table[] = {
		{ "@STATE_DIR@", config->state_dir },
		{ "@LIB_DIR@", config->lib_dir },
		{ "@HTTP_PORT@", port },
		{ "@HTTP_ADDRESS@", alone ? "127.0.0.1" : "0.0.0.0" },
		{ "@HTTP_NEAR@", near_fill(&near, config) },
		{ "@STANDIN_PORT@", standin },
		{ "@STOP@", stop },
		{ "@STANDIN@", standin_port != 0 ? "" : "#" },
		{ "@NODES@", buf_str(&nodes) },
		{ "@NO_STANDIN@", standin_port != 0 ? "#" : "" },
		{ "", "" },
	};

	if (nodes_known != 0 || nginx_check_paths(config, err) != 0)
		return -1;
	nginx_fill(out, template, table);
	if (out->overflow)
		return err_set(err, ERR_LIMIT, "nginx.conf: too large");
	return 0;
}

/* nginx.conf is written whole or not at all. */
static int
nginx_conf_write(const struct config *config, long standin_port,
    struct err *err)
{
	auto_free char *path = xprintf("%s/nginx.conf.in", config->lib_dir);
	auto_buf struct buf template = BUF_INIT(CONF_MAX);
	auto_buf struct buf text = BUF_INIT(CONF_MAX);
	auto_free char *target = config_state_path(config, "nginx.conf");

	if (file_read(path, &template, err) != 0 ||
	    nginx_conf_fill(&text, buf_str(&template), config, standin_port,
		err) != 0)
		return -1;
	return file_write(target, buf_str(&text), text.len, false, err);
}

/* ---- the programs ---- */

/* Sockets by which nginx reaches the fronts: we hold them, so that a program
 * may end and start.  il-api has a queue of its own for each of its pools, in
 * their order. */
static const struct {
	const char *name;
	enum account account;
	bool pool;
} sockets[] = {
	{ "fcgi.sock", ACCOUNT_FCGI, false },
	{ "api.sock", ACCOUNT_API, false },
	{ "run.sock", ACCOUNT_API, true },
	{ "files.sock", ACCOUNT_API, false },
	{ "session.sock", ACCOUNT_API, true },
	{ "connect.sock", ACCOUNT_API, false },
	{ "mcp.sock", ACCOUNT_API, false },
	{ "node.sock", ACCOUNT_NODE, false },
};

static int
run_add_sockets(const struct run *run, struct program *program, struct err *err)
{
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		auto_free char *path = config_state_path(run->config,
		    sockets[i].name);
		int fd;

		if (sockets[i].account != program->account)
			continue;
		fd = fd_listen_unix(path, SOCK_STREAM | SOCK_NONBLOCK, 0660,
		    err);
		if (fd < 0)
			return -1;
		assert(program->fd_count < CHILD_FDS);
		program->fds[program->fd_count++] = fd;
		(void)listen(fd,
		    sockets[i].pool ? (int)run->config->api_queue :
				      FRONT_BACKLOG);
		if (run->separate &&
		    lchown(path, 0, run->gids[ACCOUNT_GROUP_WEB]) != 0)
			return err_system(err, "%s", path);
	}
	return 0;
}

/* slot: of a worker; -1: it has none. */
static int
run_add(struct run *run, enum child_stage stage, const char *file,
    enum account account, int64_t slot, struct err *err)
{
	struct program *program = &run->programs[run->children.count];

	*program = (struct program){ .file = file, .account = account };
	if (slot >= 0)
		(void)snprintf(program->slot, sizeof(program->slot), "%" PRId64,
		    slot);
	(void)snprintf(program->name, sizeof(program->name), "%s%s%s", file,
	    slot >= 0 ? " " : "", program->slot);
	/* SIGTERM would cut nginx's answers. */
	run->children.of[run->children.count++] = (struct child){
		.name = program->name,
		.stage = stage,
		.end_signal = account == ACCOUNT_NGINX ? SIGQUIT : SIGTERM,
	};
	if (account == ACCOUNT_STANDIN) /* its socket is ours, too */
		program->fds[program->fd_count++] = steal_fd(&run->standin
								  .listen_fd);
	return stage == STAGE_FRONT ? run_add_sockets(run, program, err) : 0;
}

/* The programs in the order of their start.  il-node runs only where there are
 * several nodes. */
static int
plan_make(struct run *run, struct err *err)
{
	const size_t most = (size_t)run->config->workers + 6;
	int result;

	run->programs = xcalloc(most, sizeof(*run->programs));
	run->children.of = xcalloc(most, sizeof(*run->children.of));
	result = run_add(run, STAGE_BROKER, "il-sandboxd", ACCOUNTS, -1, err);
	for (int64_t i = 0; i < run->config->workers; i++)
		(void)run_add(run, STAGE_DRAIN, "il-worker", ACCOUNT_WORKER, i,
		    err);
	if (result == 0)
		result = run_add(run, STAGE_FRONT, "il-fcgi", ACCOUNT_FCGI, -1,
		    err);
	if (result == 0)
		result = run_add(run, STAGE_FRONT, "il-api", ACCOUNT_API, -1,
		    err);
	if (result == 0 && *run->config->nodes != '\0')
		result = run_add(run, STAGE_FRONT, "il-node", ACCOUNT_NODE, -1,
		    err);
	if (run->standin.port != 0)
		(void)run_add(run, STAGE_STANDIN, "stand-in", ACCOUNT_STANDIN,
		    -1, err);
	(void)run_add(run, STAGE_DRAIN, "nginx", ACCOUNT_NGINX, -1, err);
	return result;
}

/* One of ours is <folder>/<program> [-e envfile] [-s slot]. */
static void
run_exec_own(const struct run *run, const struct program *program)
{
	auto_free char *path = xprintf("%s/%s", run->folder, program->file);
	const char *words[4] = { NULL }; /* the first NULL ends them */
	size_t count = 0;

	if (run->env_file != NULL) {
		words[count++] = "-e";
		words[count++] = run->env_file;
	}
	if (*program->slot != '\0') {
		words[count++] = "-s";
		words[count++] = program->slot;
	}
	(void)execl(path, path, words[0], words[1], words[2], words[3], NULL);
}

void
run_exec(const struct run *run, const struct program *program)
{
	const struct config *config = run->config;
	auto_free char *conf = config_state_path(config, "nginx.conf");
	auto_free char *commands = config_state_path(config, "commands.json");
	auto_free char *history = config_state_path(config,
	    "standin/history.db");
	auto_free char *endpoint = xprintf("http://127.0.0.1:%" PRId64
					   "/interactions",
	    config->http_port);

	if (program->account == ACCOUNT_NGINX)
		(void)execlp("nginx", "nginx", "-e", "stderr", "-c", conf,
		    NULL);
	else if (program->account == ACCOUNT_STANDIN)
		(void)execlp(standin_python(), standin_python(),
		    run->standin.script, "--key-file", run->standin.key_file,
		    "--history", history, "--listen-fd", "3", "--endpoint",
		    endpoint, "--commands", commands, "--verbose", NULL);
	else
		run_exec_own(run, program);
}

/* ---- run ---- */

/* Two of us in one folder would take each other's sockets.  The kernel drops
 * the lock with our process.  The file holds our port. */
static int
run_lock(struct run *run, struct err *err)
{
	auto_free char *path = config_state_path(run->config, "run.lock");
	auto_free char *port = xprintf("%" PRId64, run->config->http_port);

	run->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0640);
	if (run->lock_fd >= 0 && flock(run->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return ftruncate(run->lock_fd, 0) != 0 ?
		    err_system(err, "%s", path) :
		    fd_write_all(run->lock_fd, port, strlen(port), err);
	if (run->lock_fd < 0 || errno != EWOULDBLOCK)
		return err_system(err, "%s", path);
	return err_set(err, ERR_CONFIG,
	    "IL_STATE_DIR: another ilctl runs in %s", run->config->state_dir);
}

/* The view has the folders that programs other than root's need; the sandboxes
 * are il-node's alone. */
static int
open_view(struct run *run, struct err *err)
{
	char *files[VIEW_PATHS_MAX] = { NULL };
	const char *shown[VIEW_PATHS_MAX] = { run->folder };
	size_t count = 1;
	int result;

	if (run->standin.script != NULL)
		files[0] = realpath(run->standin.script, NULL);
	if (files[0] != NULL)
		shown[count++] = dirname(files[0]);
	for (size_t i = 0; i < PATHS; i++) {
		const char *path = *field(run->config, i);

		if (*path == '\0' ||
		    (path == run->config->base_dir &&
			*run->config->nodes == '\0'))
			continue;
		files[count] = xstrdup(path);
		shown[count] = paths[i].is_file ? dirname(files[count]) : path;
		count++;
	}
	result = view_open(&run->view_fd, shown, count, err);
	for (size_t i = 0; i < VIEW_PATHS_MAX; i++)
		free(files[i]);
	return result;
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

/* Find every fault before a program is started: first the folders, then their
 * contents, then their owners. */
static int
run_prepare(struct run *run, struct err *err)
{
	struct config *config = run->config;
	auto_close int port = -1;

	account_find(run);
	if (find_programs(run, err) != 0 ||
	    fd_make_dirs(config->state_dir, 0750, err) != 0 ||
	    fd_make_dirs(config->base_dir, 0750, err) != 0 ||
	    run_lock(run, err) != 0)
		return -1;
	supervise_clear(config);
	if (estate_prepare(run, err) != 0 ||
	    ctl_migrate_database(config, err) < 0 ||
	    db_claim(config, err) != 0 || settings_resolve(config, err) != 0 ||
	    standin_prepare(&run->standin, config, err) != 0)
		return -1;
	/* nginx would find it taken only after everything else was started */
	port = standin_listen((long)config->http_port);
	if (port < 0)
		return err_set(err, ERR_CONFIG,
		    "IL_HTTP_PORT: something else listens on "
		    "127.0.0.1:%" PRId64,
		    config->http_port);
	if (nginx_conf_write(config, run->standin.port, err) != 0 ||
	    (run->standin.port != 0 && commands_write(config, err) != 0))
		return -1;
	if (run->separate) { /* each program is given its own files */
		run->database = db_open(config->database, DB_READER, err);
		if (run->database == NULL || estate_share(run, err) != 0 ||
		    open_view(run, err) != 0 ||
		    settings_export(config, run->env_file, err) != 0)
			return -1;
		run->env_file = NULL;
	}
	return plan_make(run, err);
}

/* The programs themselves have ended by then. */
static void
run_release(struct run *run)
{
	for (size_t i = 0; i < run->children.count; i++)
		while (run->programs[i].fd_count > 0)
			(void)close(run->programs[i]
					.fds[--run->programs[i].fd_count]);
	free(run->programs);
	free(run->children.of);
	free(run->standin.script);
	free(run->standin.key_file);
	cleanup_close(&run->standin.listen_fd);
	db_close(run->database);
	cleanup_close(&run->view_fd);
	cleanup_close(&run->lock_fd);
}

/* The environment file may be named before or after `run`; the one that is
 * named after it counts. */
int
ctl_run(struct ctl *ctl, struct err *err)
{
	struct run run = { .config = &ctl->config,
		.env_file = ctl->env_file,
		.lock_fd = -1,
		.standin = { .listen_fd = -1 },
		.view_fd = -1 };
	int code = -1;

	if (ctl->argc == 3 && strcmp(ctl->argv[1], "-e") == 0) {
		run.env_file = ctl->argv[2];
		config_release(&ctl->config);
		if (config_load(&ctl->config, run.env_file, err) != 0)
			return -1;
	} else if (ctl->argc != 1) {
		return CTL_MISUSED;
	}
	(void)umask(0007);
	if (run_prepare(&run, err) == 0) {
		code = supervise(&run, err);
		supervise_clear(run.config);
		log_info("ended");
	}
	run_release(&run);
	return code;
}

/* ---- the state of a running `ilctl run` ---- */

bool
where_is_run(const struct config *config)
{
	auto_free char *path = config_state_path(config, "run.lock");
	auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 &&
	    errno == EWOULDBLOCK;
}

int64_t
where_port(const struct config *config)
{
	auto_free char *path = config_state_path(config, "run.lock");
	auto_buf struct buf text = BUF_INIT(PORT_SIZE);
	struct err err;
	int64_t port;

	return where_is_run(config) && file_read(path, &text, &err) == 0 &&
		text_parse_int(buf_str(&text), 1, 65535, &port) ?
	    port :
	    config->http_port;
}
