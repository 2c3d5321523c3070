/* All that can be wrong with an installation, each with what mends it. */
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/fd.h"
#include "../protocol/sockets.h"
#include "../store/db.h"
#include "../store/job.h"
#include "ctl.h"

#define BROKER_MS 3000

void
doctor_good(struct doctor *d, const char *fmt, ...)
{
	va_list ap;

	(void)d;
	va_start(ap, fmt);
	(void)fputs("ok    ", stdout);
	(void)vprintf(fmt, ap);
	(void)putchar('\n');
	va_end(ap);
}

void
doctor_note(struct doctor *d, const char *fmt, ...)
{
	va_list ap;

	(void)d;
	va_start(ap, fmt);
	(void)fputs("note  ", stdout);
	(void)vprintf(fmt, ap);
	(void)putchar('\n');
	va_end(ap);
}

void
doctor_bad(struct doctor *d, const char *mend, const char *fmt, ...)
{
	va_list ap;

	d->failed++;
	va_start(ap, fmt);
	(void)fputs("FAIL  ", stdout);
	(void)vprintf(fmt, ap);
	(void)putchar('\n');
	va_end(ap);
	if (mend != NULL)
		printf("      mend: %s\n", mend);
}

static void
check_keys(struct doctor *d)
{
	const struct config *c = d->config;

	if (*c->discord_public_key == '\0') {
		doctor_note(d,
		    "keys: no DISCORD_PUBLIC_KEY: `ilctl run` starts "
		    "the stand-in for Discord");
		return;
	}
	if (c->discord_application_id == 0)
		doctor_bad(d,
		    "set DISCORD_APPLICATION_ID (developer portal, "
		    "General Information)",
		    "keys: no DISCORD_APPLICATION_ID");
	else if (*c->discord_token == '\0')
		doctor_note(d,
		    "keys: no DISCORD_TOKEN: everything works but "
		    "`ilctl register`");
	else
		doctor_good(d, "keys: public key, application and token");
}

static void
check_library(struct doctor *d)
{
	static const char *const files[] = { "cell/cell.py", "seccomp.json",
		"nginx.conf.in", "commands.json" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		auto_buf struct buf path = BUF_INIT(8192);

		buf_addf(&path, "%s/%s", d->config->lib_dir, files[i]);
		if (access(buf_str(&path), R_OK) == 0)
			continue;
		doctor_bad(d, "make, or make install", "library: %s is missing",
		    buf_str(&path));
		return;
	}
	doctor_good(d, "library: %s", d->config->lib_dir);
}

static void
check_folder(struct doctor *d, const char *name, const char *path)
{
	auto_buf struct buf mend = BUF_INIT(8192);
	struct stat st;

	buf_addf(&mend, "mkdir -p %s", path);
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		doctor_bad(d, buf_str(&mend), "%s: no folder %s", name, path);
	else if (access(path, R_OK | W_OK | X_OK) != 0)
		doctor_bad(d, "run this as root, or as the service's user",
		    "%s: %s is not writable for you", name, path);
	else
		doctor_good(d, "%s: %s", name, path);
}

/* Open it as a worker does, take the write lock, and let go. */
static void
check_database(struct doctor *d)
{
	struct err err = { 0 };
	struct job_counts counts = { 0 };
	struct db *db = db_open(d->config->database, DB_WORKER, &err);

	if (db == NULL || db_begin(db, &err) != 0) {
		doctor_bad(d, "ilctl migrate", "database: %s", err.text);
		db_close(db);
		return;
	}
	db_rollback(db);
	if (job_count(db, &counts, &err) != 0)
		doctor_bad(d, NULL, "database: %s", err.text);
	else
		doctor_good(d,
		    "database: %s, %" PRId64 " queued, %" PRId64
		    " running, %" PRId64 " to be told",
		    d->config->database, counts.queued, counts.running,
		    counts.untold);
	if (counts.oldest_ms > 60000)
		doctor_bad(d, "look at il-worker's log",
		    "queue: the oldest job waits for %" PRId64 " s",
		    counts.oldest_ms / 1000);
	db_close(db);
}

static const char start_it[] = "make run, or systemctl start inline.target";

static void
check_socket(struct doctor *d, const char *program, const char *name)
{
	auto_free char *path = config_state_path(d->config, name);
	struct err err = { 0 };
	auto_close int fd = fd_connect_unix(path, SOCK_STREAM, &err);

	if (fd < 0)
		doctor_bad(d, start_it, "%s: %s", program, err.text);
	else
		doctor_good(d, "%s: %s", program, path);
}

static void
ask_broker(struct doctor *d)
{
	auto_free char *path = config_state_path(d->config, SOCKET_BROKER_CTL);

	d->broker = lease_status(path, &d->status, BROKER_MS, &d->refusal) ==
	    REFUSAL_NONE;
}

static void
check_broker(struct doctor *d)
{
	const struct lease_status *s = &d->status;

	if (!d->broker) {
		doctor_bad(d, start_it, "il-sandboxd: %s", d->refusal.text);
		return;
	}
	doctor_good(d, "il-sandboxd: %" PRId64 " cells, %" PRId64 " leased%s%s",
	    s->cells, s->leased, *s->python != '\0' ? ", Python " : "",
	    s->python);
	if (s->engine_age_ms < 0)
		doctor_note(d, "il-sandboxd: has just begun to ask the engine");
	else if (!s->engine)
		doctor_bad(d, "look at il-sandboxd's log",
		    "il-sandboxd: cannot reach the engine (asked %" PRId64
		    " s ago): %s",
		    s->engine_age_ms / 1000, s->trouble);
}

/* Not what is free counts for who wants to write, but what is left of it. */
static void
check_ledger(struct doctor *d)
{
	const struct lease_status *s = &d->status;
	int64_t left = s->free_bytes - s->floor - s->promised;
	char promised[32];
	char more[32];

	if (!d->broker)
		return;
	ctl_size(s->promised, promised);
	ctl_size(left > 0 ? left : 0, more);
	if (left < d->config->quota)
		doctor_bad(d, "free some space, or ilctl expire",
		    "ledger: %s promised, %s for more: not enough for one "
		    "sandbox more to be written to; others only read",
		    promised, more);
	else
		doctor_good(d, "ledger: %s promised, %s for more", promised,
		    more);
}

static void
check_all(struct doctor *d)
{
	ask_broker(d);
	check_keys(d);
	check_library(d);
	check_folder(d, "state", d->config->state_dir);
	check_folder(d, "sandboxes", d->config->base_dir);
	check_database(d);
	doctor_engine(d);
	doctor_images(d);
	doctor_loop(d);
	doctor_nginx(d);
	doctor_disk(d);
	check_socket(d, "il-fcgi", "fcgi.sock");
	check_socket(d, "il-api", "api.sock");
	check_broker(d);
	check_ledger(d);
	doctor_http(d);
	doctor_isolation(d);
	doctor_tokens(d);
	doctor_discord(d);
}

int
ctl_doctor(struct ctl *ctl, int argc, char **argv)
{
	struct doctor d = { .config = &ctl->config };
	struct err err = { 0 };

	(void)argv;
	if (argc != 1)
		return ctl_usage("doctor");
	if (config_load(&ctl->config, ctl->env_file, &err) != 0) {
		doctor_bad(&d, "correct it; `ilctl config` shows all settings",
		    "configuration: %s", err.text);
		return CTL_CONFIG;
	}
	doctor_good(&d, "configuration");
	check_all(&d);
	if (d.failed == 0)
		printf("\nNothing is wrong.\n");
	else
		printf("\n%d thing%s wrong.\n", d.failed,
		    d.failed == 1 ? " is" : "s are");
	return d.failed == 0 ? CTL_OK : CTL_FAILED;
}
