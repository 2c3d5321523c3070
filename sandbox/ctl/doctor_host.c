/* SPDX-License-Identifier: MIT */
/*
 * The checks of the machine: engine, images, loop devices, nginx, disk; and of
 * whom it reaches: nginx's pages, Discord, and its clock beside ours.
 */
#include "doctor.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <libgen.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/config_images.h"
#include "../base/docker_cli.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../rest/rest.h"
#include "application.h"
#include "http.h"
#include "nginx_room.h"
#include "where.h"

#define TOOL_MS 15000
#define OUTPUT_MAX (256 << 10)
/* nginx's own file comes first in what it prints of its configuration. */
#define DUMP_MAX (1 << 20)
#define WHY 256
/* Below this, the broker refuses new cells soon, */
#define SANDBOXES_LOW (INT64_C(1) << 30)
/* commits fail soon, */
#define DATABASE_LOW (INT64_C(256) << 20)
/* il-api refuses uploads soon: it leaves 256 MiB to others. */
#define FILES_LOW (INT64_C(512) << 20)

/* Far less than IL_MAX_SKEW_SECONDS allows, and far more than a clock that is
 * kept has. */
#define SKEW_MAX 10

/* Run a tool, whose arguments end with a NULL; false (and why) when it cannot
 * be run or fails. */
static bool
tool(const char *const *argv, char why[static WHY])
{
	struct process_spec spec = {
		.argv = argv, .output_max = OUTPUT_MAX, .timeout_ms = TOOL_MS
	};
	auto_result struct process_result result = { 0 };
	struct err err;

	if (process_run(&spec, &result, &err) != 0) {
		(void)snprintf(why, WHY, "%s", err.text);
		return false;
	}
	process_describe(&result, why, WHY);
	return process_succeeded(&result);
}

#define TOOL(why, ...) tool((const char *const[]){ __VA_ARGS__, NULL }, why)

static bool
engine_answers(const struct config *config, char why[static WHY])
{
	return TOOL(why, config->docker_binary, "version", "--format",
	    "{{.Server.Version}}");
}

/* Program, engine, and a fault of some versions that a limit would be lost
 * by. */
void
doctor_engine(struct doctor *d)
{
	bool forgets_rates;
	struct err err = { 0 };
	char why[WHY];

	if (docker_cli_check(d->config->docker_binary, &forgets_rates, &err) !=
	    0)
		doctor_bad(d, "Docker 20.10 or newer; DOCKER_BINARY=docker",
		    "engine: %s", err.text);
	else if (engine_answers(d->config, why))
		doctor_good("engine: answers");
	else
		doctor_bad(d,
		    "systemctl start docker, or make run; you must "
		    "be root or in the group docker",
		    "engine: %s", why);
	if (forgets_rates &&
	    (d->config->disk_rate > 0 || d->config->disk_ops > 0))
		doctor_note(
		    "disk: this Docker client forgets IL_DISK_RATE and "
		    "IL_DISK_OPS; those up to 24, 25.0.7, and from 27.1.2 on "
		    "do not (docker/cli, issue 5321)");
}

/* An engine that does not answer is told by its own check. */
static void
check_image(struct doctor *d, const char *what, const char *image,
    const char *key)
{
	auto_free char *mend = xprintf(
	    "%s pull %s; or `make image` and inline-python:3.11 or 3.13 in %s",
	    d->config->docker_binary, image, key);
	char why[WHY];

	if (TOOL(why, d->config->docker_binary, "image", "inspect", "--format",
		"{{.Id}}", image))
		doctor_good("%s: %s", what, image);
	else if (!engine_answers(d->config, why))
		doctor_note("%s: cannot be looked for without the engine",
		    what);
	else
		doctor_bad(d, mend, "%s: %s is missing", what, image);
}

/*
 * The images that il-sandboxd runs with, otherwise those that it would: `make
 * run` gives it substitutes for what cannot be pulled.
 */
void
doctor_images(struct doctor *d)
{
	const struct lease_status *status = &d->status;
	const char *image = d->broker && *status->image_name != '\0' ?
	    status->image_name :
	    d->config->sandbox_image;
	const struct {
		const char *key;
		const char *list;
		const char *place;
	} lists[] = {
		{ "SANDBOX_IMAGES",
		    d->broker && *status->images != '\0' ?
			status->images :
			d->config->sandbox_images,
		    "" },
		{ "IL_CHAT_IMAGES",
		    d->broker && *status->chat_images != '\0' ?
			status->chat_images :
			d->config->chat_images,
		    " in chat" },
	};

	check_image(d, "image", image, "SANDBOX_IMAGE");
	for (size_t i = 0; i < 2; i++) {
		struct image_entry entry;

		for (size_t pos = 0;
		     images_next(lists[i].list, &pos, &entry);) {
			auto_free char *what = xprintf("image of Python %s%s",
			    entry.name, lists[i].place);

			if (strcmp(entry.image, image) != 0 &&
			    (i == 0 ||
				!images_have(lists[0].list, entry.image)))
				check_image(d, what, entry.image, lists[i].key);
		}
	}
}

/* Workspaces are file systems on loop devices. */
void
doctor_loop(struct doctor *d)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	char why[WHY];

	if (control >= 0)
		doctor_good("loop devices: usable");
	else if (access("/dev/loop-control", F_OK) != 0)
		doctor_bad(d, "modprobe loop",
		    "loop devices: the kernel offers none");
	else
		doctor_bad(d,
		    "run il-sandboxd (and this) as root, or in the "
		    "group disk",
		    "loop devices: not usable for you");
	if (TOOL(why, "mkfs.ext4", "-V"))
		doctor_good("mkfs.ext4: there");
	else
		doctor_bad(d, "apt-get install e2fsprogs", "mkfs.ext4: %s",
		    why);
}

/* nginx that root asks gives its folders to the user it would become: that is
 * to be the one who has them, or the nginx that runs could not write there any
 * more.  An empty text where it gives nothing away; false where they have no
 * name. */
static bool
name_owner(char directive[static WHY], const char *conf)
{
	auto_free char *folder = NULL;
	const struct passwd *user;
	const struct group *group;
	struct stat st;

	directive[0] = '\0';
	if (conf == NULL || geteuid() != 0)
		return true;
	folder = xprintf("%.*s/nginx", (int)(strrchr(conf, '/') - conf), conf);
	if (stat(folder, &st) != 0 || st.st_uid == 0)
		return true;
	user = getpwuid(st.st_uid);
	group = getgrgid(st.st_gid);
	if (user == NULL || group == NULL)
		return false;
	(void)snprintf(directive, WHY, "user %s %s;", user->pw_name,
	    group->gr_name);
	return true;
}

/* How nginx would be started: what it prints, or why it would not.  conf: NULL
 * for the system's own. */
static bool
dump_nginx(struct process_result *result, const char *conf,
    const char *directive, char why[static WHY])
{
	const char *const argv[] = { "nginx", "-T", "-q", "-e", "stderr", "-g",
		directive, conf == NULL ? NULL : "-c", conf, NULL };
	struct process_spec spec = {
		.argv = argv, .output_max = DUMP_MAX, .timeout_ms = TOOL_MS
	};
	struct err err;

	if (process_run(&spec, result, &err) != 0) {
		(void)snprintf(why, WHY, "%s", err.text);
		return false;
	}
	process_describe(result, why, WHY);
	return process_succeeded(result);
}

static const char generate[] =
    "start `ilctl run` again: it generates the configuration";
/* Step 5 of nginx/README.md. */
static const char make_room[] =
    "sed -i.bak --follow-symlinks -e '1i worker_rlimit_nofile 16384;' "
    "-e '/^\\s*worker_rlimit_nofile\\s*[0-9]*;\\s*$/d' "
    "-e 's/worker_rlimit_nofile\\s*[0-9]*;//' "
    "-e 's/worker_connections\\s*[0-9]*;/worker_connections 8192;/' "
    "/etc/nginx/nginx.conf && nginx -t && systemctl restart nginx";

static void
check_nginx_room(struct doctor *d, const char *dump, const char *conf)
{
	struct nginx_room room;

	nginx_room_read(&room, dump, d->config->lib_dir);
	if (!room.ours && conf == NULL)
		doctor_note("nginx: its configuration has nothing of Inline's; "
			    "nginx/README.md has the steps");
	else if (!nginx_room_suffices(&room))
		doctor_bad(d, conf != NULL ? generate : make_room,
		    "nginx: worker_connections is %" PRId64
		    ", worker_rlimit_nofile %" PRId64
		    " (0: not set): one stranger could take them all; %d are "
		    "needed, and more files than connections",
		    room.connections, room.files, NGINX_CONNECTIONS_MIN);
	else
		doctor_good("nginx: %s, %" PRId64 " connections",
		    conf != NULL ? conf : "as it is installed",
		    room.connections);
}

/* Is it there, and does it take what was generated, or else the system's own
 * configuration, and in that as many connections as are needed? */
void
doctor_nginx(struct doctor *d)
{
	auto_free char *generated = config_state_path(d->config, "nginx.conf");
	auto_free char *conf = realpath(generated, NULL);
	auto_result struct process_result dump = { 0 };
	char directive[WHY];
	char why[WHY];

	if (!TOOL(why, "nginx", "-v"))
		doctor_bad(d, "apt-get install nginx", "nginx: %s", why);
	else if (!name_owner(directive, conf))
		doctor_note("nginx: its user has no name here, so %s was not "
			    "looked at",
		    conf);
	else if (dump_nginx(&dump, conf, directive, why))
		check_nginx_room(d, buf_str(&dump.out), conf);
	else if (conf != NULL)
		doctor_bad(d, generate, "nginx: %s", why);
	else if (geteuid() == 0)
		doctor_bad(d, "nginx -t, and what it says", "nginx: %s", why);
	else
		doctor_note("nginx: only root may look at the system's "
			    "configuration");
}

/* Where data is: the state folder holds sockets, often in memory. */
static void
check_space(struct doctor *d, const char *name, const char *path, int64_t low)
{
	struct statvfs fs;
	int64_t free_bytes;
	struct text_short text;

	if (statvfs(path, &fs) != 0)
		return; /* told by the check of the folder */
	free_bytes = (int64_t)(fs.f_bavail * fs.f_frsize);
	text = text_size(free_bytes);
	if (free_bytes < low)
		doctor_bad(d, "free some space, or ilctl expire",
		    "disk: %s left for %s in %s; it should be %s", text.text,
		    name, path, text_size(low).text);
	else if (fs.f_files > 0 && fs.f_favail < 10000)
		doctor_bad(d, "remove some files",
		    "disk: only %lu inodes left for %s in %s",
		    (unsigned long)fs.f_favail, name, path);
	else
		doctor_good("disk: %s free for %s", text.text, name);
}

void
doctor_disk(struct doctor *d)
{
	const struct config *config = d->config;
	auto_free char *database = xstrdup(config->database);

	check_space(d, "the database", dirname(database), DATABASE_LOW);
	check_space(d, "the sandboxes", config->base_dir, SANDBOXES_LOW);
	check_space(d, "the files of the HTTP APIs", config->api_files,
	    FILES_LOW);
}

/* ---- nginx, Discord, and its clock beside ours ---- */

static CURLcode
ask(struct http *http, const char *url)
{
	*http = (struct http){
		.url = url, .agent = REST_USER_AGENT, .no_proxy = "127.0.0.1"
	};
	return http_ask(http);
}

/* The kernel knows whether anybody keeps its clock. */
static void
check_kernel_clock(void)
{
	struct timex timex = { 0 };

	if (adjtimex(&timex) == TIME_ERROR)
		doctor_note(
		    "clock: nothing keeps it (systemd-timesyncd, "
		    "chrony); a wrong clock makes signatures look stale");
	else
		doctor_good("clock: kept");
}

/* Signatures carry Discord's time: a clock that differs makes them look
 * stale. */
static void
check_skew(struct doctor *d, time_t date)
{
	int64_t skew = (int64_t)time(NULL) - (int64_t)date;

	if (date <= 0)
		check_kernel_clock();
	else if (skew > SKEW_MAX || skew < -SKEW_MAX)
		doctor_bad(d, "timedatectl set-ntp true",
		    "clock: %" PRId64 " s beside Discord's", skew);
	else
		doctor_good("clock: within %d s of Discord's", SKEW_MAX);
}

/* On loopback, where nothing stands between: no proxy is asked. */
void
doctor_http(struct doctor *d)
{
	auto_free char *url = xprintf("http://127.0.0.1:%" PRId64 "/health",
	    where_port(d->config));
	struct http http;
	CURLcode result = ask(&http, url);

	if (result != CURLE_OK)
		doctor_note(
		    "HTTP APIs: nothing answers at %s (%s); nginx/README.md "
		    "shows how to serve them",
		    url, curl_easy_strerror(result));
	else if (http.status != 200)
		doctor_bad(d,
		    "usermod -aG inline-web www-data && systemctl restart "
		    "nginx, unless il-api is what is not running",
		    "HTTP APIs: nginx does not reach il-api (status %ld)",
		    http.status);
	else
		doctor_good("HTTP APIs: %s answers", url);
}

/* Can we reach it? Its answer also tells the time. */
void
doctor_discord(struct doctor *d)
{
	/* Needs no token; any answer will do. */
	auto_free char *url = xprintf("%s/gateway",
	    d->config->discord_api_base);
	struct http http;
	CURLcode result;

	if (*d->config->discord_public_key == '\0') {
		check_kernel_clock();
		return;
	}
	result = ask(&http, url);
	if (result != CURLE_OK)
		doctor_bad(d, "let outgoing HTTPS through", "Discord: %s: %s",
		    d->config->discord_api_base, curl_easy_strerror(result));
	else
		doctor_good("Discord: %s", d->config->discord_api_base);
	check_skew(d, http.date);
}

/* With the bot's token: is it of the application that is configured? */
void
doctor_application(struct doctor *d)
{
	const struct config *c = d->config;
	auto_buf struct buf answer = BUF_INIT(REST_ANSWER_MAX);
	struct rest_reply reply = { 0 };
	struct err err = { 0 };
	enum rest_outcome outcome = REST_LATER;
	struct application app = { 0 };
	struct rest *rest;
	const char *box;

	if (*c->discord_token == '\0' || *c->discord_public_key == '\0')
		return;
	rest = rest_new(c->discord_api_base, c->discord_token,
	    c->discord_application_id, NULL, -1, &err);
	if (rest != NULL)
		outcome = application_ask(rest, REST_ONCE, &app, &answer,
		    &reply, &err);
	rest_free(rest);
	box = application_missing_box(&app);
	if (reply.status == 401)
		doctor_bad(d, "copy DISCORD_TOKEN anew (developer portal, Bot)",
		    "application: %s", err.text);
	else if (outcome != REST_DONE)
		doctor_note("application: not compared: %s", err.text);
	else if (application_compare(&app, c, &err) < 0)
		doctor_bad(d,
		    "correct it (developer portal, General Information)",
		    "application: %s", err.text);
	else if (box != NULL)
		doctor_bad(d, "tick it, then ilctl register",
		    "application: \"%s\" is not ticked on its Installation "
		    "page",
		    box);
	else
		doctor_good("application: id and public key are those that "
			    "Discord has");
	if (outcome == REST_DONE && !app.endpoint)
		doctor_note("application: Discord knows no endpoint yet: "
			    "ilctl register --endpoint URL");
}
