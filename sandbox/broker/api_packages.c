/* SPDX-License-Identifier: MIT */
/*
 * Packages that the operator installs for the runs of the HTTP APIs (`ilctl
 * packages`).  Each minor version of Python has a volume, in a folder of
 * IL_BASE_DIR that is no sandbox's:
 *
 *	API_PACKAGES_ID/packages-3.13.ext4	what runs see, never written to
 *	API_PACKAGES_ID/staging-3.13.ext4	what an installation writes to
 *
 * ilctl's STAGE makes the staging volume, a copy of the other; it lasts as long
 * as that connection.  In a lease of the class "install" pip fills it.  PUBLISH
 * waits for that cell's end, checks the file system and renames the volume.  So
 * a kill at any moment leaves the old volume or the new one.  Running cells
 * keep the volume that they have mounted.  Cells that are not leased end, and
 * the others are not leased again.
 *
 * All cells of a version mount one loop device, which we hold open: the kernel
 * then has one file system for all of them, and one copy of what they read.
 */
#include "broker/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/basics.h"

#define STAGING_PREFIX "staging-"
#define PUBLISH_WAIT_MS 15000 /* for the cell to unlock the volume */
#define CHECK_MS 60000
#define LIST_MS 10000
#define TEXT_MAX 4096 /* of the package list, in one frame */

/* ---- names ---- */

void
api_packages_staging(const char *interpreter, char name[VOLUME_NAME_MAX])
{
	char minor[IMAGES_NAME_MAX + 1];

	images_minor(interpreter, minor);
	(void)snprintf(name, VOLUME_NAME_MAX, STAGING_PREFIX "%s.ext4", minor);
}

/* Open the folder of these volumes, and make it when it is missing. -1: failed.
 */
static int
open_own_folder(int base)
{
	if (mkdirat(base, API_PACKAGES_ID, 0700) != 0 && errno != EEXIST)
		return -1;
	return workspace_open_folder(base, API_PACKAGES_ID);
}

void
api_packages_sweep(int base)
{
	auto_dir DIR *list = workspace_list(base, API_PACKAGES_ID);
	const char *name;

	while (list != NULL && (name = workspace_next_volume(list)) != NULL) {
		if (strncmp(name, STAGING_PREFIX, strlen(STAGING_PREFIX)) == 0)
			(void)unlinkat(dirfd(list), name, 0);
	}
}

/* ---- staging ---- */

/* Read which interpreter of SANDBOX_IMAGES the client names. */
static enum refusal
interpreter_read(struct client *client, const struct frame_view *view,
    struct image_entry *entry)
{
	char target[API_PACKAGES_TARGET_MAX];
	enum refusal code = client_read_interpreter(client, view,
	    client->host->config->sandbox_images, entry);

	if (code == REFUSAL_NONE && !api_packages_target(entry->name, target))
		return client_because(client, REFUSAL_INTERPRETER,
		    "the interpreter's name does not begin with a version");
	return code;
}

/* The client that stages now, or NULL: one at a time, for all versions. */
static const struct client *
staging_client(const struct clients *clients, const struct client *but)
{
	const struct client *other;

	TAILQ_FOREACH(other, &clients->all, link) {
		if (other != but && other->listener->program == PROGRAM_CTL &&
		    (other->state == CLIENT_WAITS_TO_CREATE ||
			other->state == CLIENT_CREATES ||
			other->state == CLIENT_STAGES ||
			other->state == CLIENT_PUBLISHES))
			return other;
	}
	return NULL;
}

/* The staging volume is a copy of the published one, or empty where there is
 * none. */
enum refusal
request_stage(struct client *client, const struct frame_view *view)
{
	struct host *host = client->host;
	struct creation *c = &client->creation;
	auto_close int folder = -1;
	struct image_entry entry;
	struct stat st;
	enum refusal code = interpreter_read(client, view, &entry);

	if (code != REFUSAL_NONE)
		return code;
	if (staging_client(client->clients, client) != NULL)
		return client_because(client, REFUSAL_BUSY,
		    "packages are being changed by another");
	folder = open_own_folder(host->base);
	if (folder < 0)
		return client_because(client, REFUSAL_START,
		    "no folder for the packages");
	(void)snprintf(c->id, sizeof(c->id), "%s", API_PACKAGES_ID);
	c->only_packages = true;
	api_packages_staging(entry.name, c->packages);
	workspace_packages_name(entry.name, c->copied);
	(void)unlinkat(folder, c->packages, 0);
	c->sizes[1].bytes = host->config->api_packages_quota;
	c->sizes[1].files = c->sizes[1].bytes / CONFIG_PACKAGE_FILE_BYTES;
	if (fstatat(folder, c->copied, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return space_wait_to_create(client,
		    (int64_t)st.st_blocks * 512);
	c->copied[0] = '\0';
	return space_wait_to_create(client, 0);
}

void
stage_abandon(struct client *client)
{
	auto_free char *path = xprintf("%s/%s", API_PACKAGES_ID,
	    client->creation.packages);

	(void)unlinkat(client->host->base, path, 0);
}

/* ---- publishing ---- */

/* Step 3: the file system is whole and has no journal to replay.  The rename
 * publishes it. */
static void
publish_on_checked(void *arg, const struct process_result *result)
{
	struct client *client = arg;
	struct host *host = client->host;
	auto_close int folder = open_own_folder(host->base);
	char name[VOLUME_NAME_MAX];

	/* 1: errors were corrected. */
	if (result->outcome != PROCESS_EXITED || result->code > 1) {
		log_err("e2fsck of new packages: %s",
		    process_describe(result).text);
		client_refuse(client, REFUSAL_START,
		    "the file system of the packages is bad");
		return;
	}
	workspace_packages_name(client->ticket.interpreter.name, name);
	if (folder < 0 || fsync(client->staged_fd) != 0 ||
	    renameat(folder, client->ticket.packages, folder, name) != 0) {
		client_refuse(client, REFUSAL_START,
		    "the packages could not be renamed");
		return;
	}
	log_info("new packages for runs of Python %s",
	    client->ticket.interpreter.name);
	api_packages_replace(host, name);
	host_schedule(host, 0);
	if (fsync(folder) != 0) {
		client_refuse(client, REFUSAL_START,
		    "a power cut may undo the change");
		return;
	}
	client_done(client);
}

/* Step 2: no cell has the staging volume mounted any more. */
static void
publish_on_locked(void *arg, const struct err *failure)
{
	struct client *client = arg;
	const struct host *host = client->host;
	auto_argv struct argv argv = { .count = 0 };

	if (failure != NULL) {
		client_refuse(client, REFUSAL_START, failure->text);
		return;
	}
	argv_init(&argv, ARGV_WORDS("e2fsck", "-p", "-f"));
	argv_addf(&argv, "%s/%s/%s", host->config->base_dir, API_PACKAGES_ID,
	    client->ticket.packages);
	subprocess_start(&client->tool, host->loop, &argv, CHECK_MS,
	    publish_on_checked, client);
}

/* Step 1: the client that stages asks, by another connection. */
enum refusal
request_publish(struct client *client, const struct frame_view *view)
{
	struct host *host = client->host;
	const struct client *stager = staging_client(client->clients, client);
	struct ticket *ticket = &client->ticket;
	enum refusal code = interpreter_read(client, view,
	    &ticket->interpreter);
	struct err err;

	if (code != REFUSAL_NONE)
		return code;
	api_packages_staging(ticket->interpreter.name, ticket->packages);
	if (stager == NULL || stager->state != CLIENT_STAGES ||
	    strcmp(stager->creation.packages, ticket->packages) != 0)
		return client_because(client, REFUSAL_INPUT,
		    "nothing is staged");
	client->staged_fd = workspace_volume_open(host->base, API_PACKAGES_ID,
	    ticket->packages, &err);
	if (client->staged_fd < 0)
		return client_because(client, REFUSAL_START, err.text);
	client->state = CLIENT_PUBLISHES;
	lock_wait_start(&client->wait, host->loop, client->staged_fd,
	    PUBLISH_WAIT_MS, publish_on_locked, client);
	return REFUSAL_NONE;
}

/* ---- the list ---- */

/* Add the "name-version" of a line "/inode/mode/uid/gid/name.dist-info/size/".
 */
static void
package_add(const char *line, struct buf *text)
{
	static const char end[] = ".dist-info";
	char name[256] = "";
	int next = 0;
	size_t n;

	(void)sscanf(line,
	    "/%*[0-9]/%*[0-9]/%*[0-9]/%*[0-9]/%255[A-Za-z0-9._+!-]%n", name,
	    &next);
	n = strlen(name);
	if (next > 0 && line[next] == '/' && n >= sizeof(end) &&
	    strcmp(name + n - (sizeof(end) - 1), end) == 0)
		buf_addf(text, "%.*s\n", (int)(n - (sizeof(end) - 1)), name);
}

/* Send a part of the list. */
static void
send_text(struct client *client, struct buf *text)
{
	struct frame frame;

	frame_start(&frame, FRAME_GRANTED);
	if (text->len > 0)
		frame_add_text(&frame, TAG_TEXT, buf_str(text));
	(void)client_send(client, &frame, -1);
	buf_reset(text);
}

/* The first frame has no text; frames with text follow. */
static void
packages_on_listed(void *arg, const struct process_result *result)
{
	struct client *client = arg;
	auto_buf struct buf text = BUF_INIT(2 * TEXT_MAX);
	const char *at = buf_str(&result->out);

	if (!process_succeeded(result)) {
		client_refuse(client, REFUSAL_START,
		    process_describe(result).text);
		return;
	}
	send_text(client, &text);
	while (*at != '\0') {
		size_t len = strcspn(at, "\n");

		package_add(at, &text);
		if (text.len > TEXT_MAX - 512)
			send_text(client, &text);
		at += len + (at[len] == '\n');
	}
	if (text.len > 0)
		send_text(client, &text);
	client_close(client);
}

/* The list is read without a mount, so no cell is started for it. */
enum refusal
request_packages(struct client *client, const struct frame_view *view)
{
	struct host *host = client->host;
	auto_argv struct argv argv = { .count = 0 };
	char name[VOLUME_NAME_MAX];
	struct image_entry entry;
	enum refusal code = interpreter_read(client, view, &entry);

	if (code != REFUSAL_NONE)
		return code;
	workspace_packages_name(entry.name, name);
	if (!workspace_has(host->base, API_PACKAGES_ID, name)) {
		client_done(client); /* no packages are installed */
		return REFUSAL_NONE;
	}
	argv_init(&argv, ARGV_WORDS("debugfs", "-R", "ls -p /"));
	argv_addf(&argv, "%s/%s/%s", host->config->base_dir, API_PACKAGES_ID,
	    name);
	client->state = CLIENT_LISTS;
	subprocess_start(&client->tool, host->loop, &argv, LIST_MS,
	    packages_on_listed, client);
	return REFUSAL_NONE;
}
