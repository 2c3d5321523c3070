#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

/*
 * The configuration of all programs: environment variables, and one env file of
 * the same keys (the environment wins).  One table in config.c holds key, type,
 * default, bounds and help; inline.conf(5) and the README's few keys are
 * compared with `ilctl config` by a test.  Strings are never NULL ("" when
 * unset), owned by the struct.  Sizes are bytes, times as the name says.
 */
/* clang-format off */
struct config {
	/* Discord */
	char *discord_token;	     /* DISCORD_TOKEN or DISCORD_TOKEN_FILE */
	char *discord_public_key;    /* DISCORD_PUBLIC_KEY: 64 hex digits */
	int64_t discord_application_id; /* DISCORD_APPLICATION_ID, 0: unset */
	char *discord_api_base;	     /* DISCORD_API_BASE, no '/' at the end */
	int64_t max_skew_seconds;    /* IL_MAX_SKEW_SECONDS, 0: no check */

	/* where things are */
	char *base_dir;	    /* IL_BASE_DIR: workspaces */
	char *database;	    /* IL_DATABASE: default <state_dir>/inline.db */
	char *state_dir;    /* IL_STATE_DIR: sockets, logs, generated files */
	char *lib_dir;	    /* IL_LIB_DIR: cell/, seccomp.json, sql/; default:
			     * <folder of the program>/../lib when cell/cell.py
			     * is there (build tree), or PREFIX/lib/inline */
	int64_t http_port;  /* IL_HTTP_PORT, nginx on loopback */

	/* the image and the engine */
	char *docker_binary;	/* DOCKER_BINARY */
	char *sandbox_image;	/* SANDBOX_IMAGE */
	char *sandbox_images;	/* SANDBOX_IMAGES (config_images.h), never "" */
	bool pull_on_startup;	/* SANDBOX_PULL_ON_STARTUP */
	int64_t start_ms;	/* IL_START_SECONDS */
	bool derive;		/* SANDBOX_DERIVE */
	char *sandbox_runtime;	/* SANDBOX_RUNTIME, "" the engine's default */

	/* limits of a run */
	int64_t timeout_ms;	/* IL_TIMEOUT_SECONDS, decimals allowed */
	int64_t memory;		/* IL_MEMORY */
	double cpus;		/* IL_CPUS */
	int64_t pids;		/* IL_PIDS */
	int64_t quota;		/* IL_QUOTA: bytes of a workspace */
	int64_t files;		/* IL_FILES: files and folders in it */
	int64_t disk_rate;	/* IL_DISK_RATE: bytes/s of a cell's disk */
	int64_t disk_ops;	/* IL_DISK_OPS: requests/s to it */
	int64_t output_limit;	/* IL_OUTPUT_LIMIT: bytes a run may print */
	int64_t tmp_size;	/* IL_TMP: bytes of /tmp (memory) */
	bool echo_last_expr;	/* ECHO_LAST_EXPR */

	/* people and queue */
	int64_t retention_seconds; /* IL_RETENTION_SECONDS */
	int64_t sandboxes;	   /* IL_SANDBOXES: at most */
	int64_t workers;	   /* IL_WORKERS */
	int64_t stop_ms;	   /* IL_STOP_SECONDS */
	int64_t queue_max;	   /* IL_QUEUE_MAX: unfinished jobs at most */
	int64_t user_rate;	   /* IL_USER_RATE: commands a user may send in
				    * 60 s */

	/* cells */
	int64_t cells;		/* IL_CELLS: containers at most at one time */
	int64_t warm_seconds;	/* IL_WARM_SECONDS: an idle cell is kept */
	int64_t warm_cells;	/* IL_WARM_CELLS: idle cells at most */

	/* cells of the HTTP APIs: beside those of IL_CELLS */
	int64_t api_memory;   /* IL_API_MEMORY */
	int64_t api_cells;    /* IL_API_CELLS: runs at one time */
	int64_t api_queue;    /* IL_API_QUEUE: runs that wait at most */
	int64_t api_warm;     /* IL_API_WARM: cells kept ready */
	int64_t api_runs;     /* IL_API_RUNS: runs in one cell */
	char *api_files;      /* IL_API_FILES: folder, <state_dir>/files */
	int64_t api_files_quota; /* IL_API_FILES_QUOTA: bytes of all */
	int64_t api_files_ms; /* IL_API_FILES_SECONDS: after their last use */
	char *api_tokens_file; /* IL_API_TOKENS_FILE, "" none are asked for */
	int64_t api_sessions; /* IL_API_SESSIONS: sessions at one time */
	char *api_isolation;  /* IL_API_ISOLATION: "auto", "run", "cell" */
	char *preload;	      /* IL_PRELOAD: modules, "numpy,pandas" */
	char *api_apparmor;   /* IL_API_APPARMOR, "" the engine's profile */

	/* pip */
	int64_t pip_timeout_ms;	/* IL_PIP_TIMEOUT_SECONDS */
	char *pip_index_url;	/* IL_PIP_INDEX_URL, "" pip's default */
	char *pip_ca_bundle;	/* IL_PIP_CA_BUNDLE: file on the host or "" */
	char *pip_network;	/* IL_PIP_NETWORK: docker network, "bridge" */
	bool pip_allow_sdist;	/* IL_PIP_ALLOW_SDIST */
	int64_t pip_quota;	/* IL_PIP_QUOTA: bytes of .site-packages */
	int64_t pip_memory;	/* IL_PIP_MEMORY */
};
/* clang-format on */

/*
 * Fill with defaults, then env_file (NULL: none; lines KEY=VALUE, '#' comments,
 * optional single or double quotes around the value, nothing expanded), then
 * the environment.  Unknown keys that start with IL_, SANDBOX_ or DISCORD_ and
 * wrong values are ERR_CONFIG "KEY: reason"; unknown other keys in the env file
 * too, in the environment they are ignored.  IL_ENV_FILE in the environment
 * names the file when env_file is NULL; it must exist then.  An empty value
 * stands for the default.  Relative paths are made absolute against the current
 * directory.  After -1 there is nothing to release.
 */
int config_load(struct config *config, const char *env_file, struct err *err);
void config_release(struct config *config);
/* The table as Markdown rows `| key | default | help |` (ilctl config). */
void config_print_table(FILE *out);
/* How long to wait for a cell: for a broker that lets the leases of its last
 * moments end, and for two starts, as the first one may fail.  Milliseconds. */
int config_lease_wait_ms(const struct config *config);
/* "<state_dir>/<name>", heap, caller frees. */
char *config_state_path(const struct config *config, const char *name);

#endif
