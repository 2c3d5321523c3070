/* SPDX-License-Identifier: MIT */
/* The commands for files: /il look, get, put, write and rm. */
#include "worker/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "store/editor.h"
#include "store/job.h"
#include "worker/commands/source.h"
#include "worker/render/render_files.h"

#define ENTRIES_MOST 10000 /* of a zip */
/* Most bytes of a file, which is in memory on its way. */
#define PUT_MAX (100 * 1024 * 1024)
#define EDIT_BYTES (4 * EDITOR_POINTS)
#define TITLE_MOST 45

/* Call ask(), which sends read-only requests.  If the user's cell has a run,
 * they are answered during it.  If that run ends meanwhile, ask() is called
 * again in a leased cell.  False: as command_succeeded(). */
static bool
file_look(struct task *task, bool (*ask)(struct task *task, void *arg),
    void *arg)
{
	bool good = false;
	bool again;

	for (enum access access = ACCESS_LOOK;; access = ACCESS_TIDY) {
		if (!run_open(task, "user", access, 3 * FILE_OP_MS))
			break;
		good = ask(task, arg);
		if (!good && place_find(task) && command_resolve(task))
			good = ask(task, arg);
		if (!good)
			place_look_at_top(task);
		again = task->run.beside &&
		    (task->run.end == RUN_BROKEN ||
			task->run.end == RUN_OVERDUE);
		command_note_usage(task);
		lease_close(&task->lease);
		if (!again)
			break;
	}
	return good || command_succeeded(task);
}

/* Resolve a file's path likewise; a path that ends as a directory's is
 * refused. */
static bool
file_resolve_file(struct task *task)
{
	const char *path = task->job->path;

	if (task->job->view_id != 0 || !path_means_folder(path))
		return command_resolve(task);
	return command_say(task, SAY_NAMES_FOLDER,
	    phrase_name(path, PATH_SHOWN).text, NULL);
}

/* ---- /il look ---- */

static bool
look_list(struct task *task, int64_t page)
{
	return command_ask(task,
	    (struct cell_request){
		.op = OP_LIST,
		.path = task->path,
		.offset = (page - 1) * COLLECT_ENTRIES,
		.count = COLLECT_ENTRIES,
	    });
}

/* List the page; one past the end becomes the last one. */
static bool
look_list_page(struct task *task, struct render_listing *listing)
{
	int64_t page = task->job->page > 0 ? task->job->page : 1;
	int64_t total;

	if (!look_list(task, page))
		return false;
	total = task->run.result.total;
	listing->pages = total / COLLECT_ENTRIES +
	    (total % COLLECT_ENTRIES != 0);
	if (listing->pages == 0)
		listing->pages = 1;
	listing->page = page < listing->pages ? page : listing->pages;
	listing->asked = page;
	return page == listing->page || look_list(task, listing->page);
}

/* Store the view of the buttons.  A button that was pressed has one already. */
static bool
look_store_view(struct task *task, struct render_listing *listing)
{
	struct db *db = task->worker->db;
	struct view view = {
		.kind = JOB_LOOK,
		.page = listing->page,
		.user_id = task->job->user_id,
	};

	listing->view_id = task->job->view_id;
	if (listing->view_id != 0)
		return view_set_page(db, listing->view_id, listing->page,
			   &task->err) >= 0;
	if (listing->pages <= 1)
		return true;
	/* its buttons ask for this path again */
	memcpy(view.path, task->path, sizeof(task->path));
	if (view_insert(db, &view, &task->err) < 0)
		return false;
	listing->view_id = view.id;
	return true;
}

/* Change the directory and offer a button back, or offer a button to the
 * top. */
static void
look_go_there(struct task *task, struct render_listing *listing)
{
	const char *cwd = task->sandbox.cwd;
	bool moves = strcmp(task->path, cwd) != 0;

	if (!moves && *cwd == '\0')
		return;
	(void)snprintf(listing->back, sizeof(listing->back), "%s",
	    moves ? cwd : "");
	listing->moved = moves && place_set(task, task->path);
	/* without a change there is nothing to go back to */
	if (listing->moved == moves)
		listing->back_id = place_make_way(task, JOB_LOOK,
		    listing->back);
	task->place_told = listing->moved && listing->back_id != 0;
}

/* The directory becomes the current one, and gets a view when it has pages. */
static bool
show_directory(struct task *task, struct render_listing *listing)
{
	/* paging through another directory's listing does not go there */
	if (task->job->view_id == 0)
		look_go_there(task, listing);
	if (!look_store_view(task, listing))
		return false;
	render_listing(&task->env, listing);
	task->outcome = "listed";
	return true;
}

/* Has the cell sent the file? */
static bool
file_is_there(struct task *task)
{
	return task->collect.file_count == 1 ||
	    err_set(&task->err, ERR_PROTOCOL, "the cell sent no file") == 0;
}

static bool
show_file(struct task *task)
{
	if (!file_is_there(task))
		return false;
	render_file(&task->env);
	task->outcome = "shown";
	return true;
}

/* List a directory, or read a file: only the cell knows which the path is.  A
 * file leaves listing->pages 0. */
static bool
look_read(struct task *task, void *arg)
{
	struct render_listing *listing = arg;
	/* a file in the place of the current directory was not asked for */
	bool is_place = task->job->view_id == 0 &&
	    strcmp(task->path, task->sandbox.cwd) == 0;
	/* a file that is too large is cut, so that its beginning can be
	 * shown */
	struct cell_request read = {
		.op = OP_READ,
		.path = task->path,
		.max_bytes = task->env.file_most,
		.cut = true,
	};

	*listing = (struct render_listing){ 0 };
	return look_list_page(task, listing) ||
	    (outcome_failed_with(&task->run, ERROR_NOT_DIRECTORY) &&
		!is_place && command_ask(task, read));
}

/* `/il look` lists a directory, and shows a file. */
bool
cmd_look(struct task *task)
{
	struct render_listing listing;

	collect_init(&task->collect, 0, (size_t)task->env.file_most);
	return command_resolve(task) && file_look(task, look_read, &listing) &&
	    (listing.pages > 0 ? show_directory(task, &listing) :
				 show_file(task));
}

/* ---- /il get ---- */

/* Read a file as it is, a directory as a zip: only the cell knows which the
 * path is. */
static bool
get_read(struct task *task, void *arg)
{
	struct cell_request read = {
		.op = OP_READ,
		.path = task->path,
		.max_bytes = task->env.file_most,
	};
	bool *is_archive = arg;

	*is_archive = false;
	/* the cell refuses a larger file, and reports its size */
	if (command_ask(task, read))
		return true;
	*is_archive = outcome_failed_with(&task->run, ERROR_IS_DIRECTORY);
	read.op = OP_ARCHIVE;
	read.count = ENTRIES_MOST;
	return *is_archive && command_ask(task, read);
}

bool
cmd_get(struct task *task)
{
	bool is_archive = false;

	collect_init(&task->collect, 0, (size_t)task->env.file_most);
	if (!command_resolve(task) || !file_look(task, get_read, &is_archive))
		return false;
	if (is_archive)
		render_archive(&task->env);
	else if (file_is_there(task))
		render_get(&task->env);
	task->outcome = "sent";
	return true;
}

/* ---- /il put ---- */

/* Fetch the uploaded file; heap.  NULL: the message says why not. */
static void *
put_fetch(struct task *task, size_t *len)
{
	const struct job *job = task->job;
	int64_t most = task->env.config->quota;
	void *data;

	/* the announced size bounds the download */
	if (most > PUT_MAX)
		most = PUT_MAX;
	if (job->attachment_size < 0 || job->attachment_size > most) {
		(void)command_say(task, SAY_TOO_LARGE,
		    phrase_size(job->attachment_size).text,
		    phrase_size(most).text, NULL);
		return NULL;
	}
	data = command_download(task, job->attachment_url, job->attachment_size,
	    len);
	if (data == NULL || *len == (size_t)job->attachment_size)
		return data;
	free(data);
	(void)command_not_as_announced(task);
	return NULL;
}

/* Append the file's name to the path of a directory.  A name that would lead
 * elsewhere is replaced by a clean one. */
static bool
append_name(struct task *task)
{
	const char *own = task->job->attachment_name;
	char name[FILENAME_SIZE];
	char folder[PATH_SIZE];

	(void)filename_clean(name, own);
	memcpy(folder, task->path, sizeof(folder));
	if (*own != '\0' && strchr(own, '/') == NULL &&
	    path_resolve(folder, own, task->path) == PATH_OK &&
	    strcmp(path_name(task->path), own) == 0)
		return true;
	return path_resolve(folder, name, task->path) == PATH_OK ||
	    command_refuse_long(task);
}

/* Append the file's name if the path is that of an existing directory. */
static bool
look_at_target(struct task *task)
{
	const struct collect *collect = &task->collect;

	if (!command_ask(task,
		(struct cell_request){ .op = OP_STAT, .path = task->path }) &&
	    task->run.end != RUN_RESULT)
		return command_succeeded(task);
	return collect->entry_count != 1 ||
	    collect->entries[0].kind != ENTRY_DIRECTORY || append_name(task);
}

/* Send the file to the cell.  name: its own, if the job's path is a
 * folder's. */
static void
put_store(struct task *task, const char *name, const void *data, size_t len)
{
	struct cell_request write = {
		.op = OP_WRITE,
		.path = task->path,
		.content = data,
		.content_len = len,
		.wall_ms = FILE_OP_MS,
	};

	(void)run_request(task, &write);
	if (place_find_room(task, name))
		(void)run_request(task, &write);
	if (!command_succeeded(task))
		return;
	command_note_usage(task);
	render_written(&task->env, len);
	task->outcome = "stored";
}

/* Without a path the file goes into the current directory. */
bool
cmd_put(struct task *task)
{
	bool folder = path_means_folder(task->job->path);
	auto_free void *data = NULL;
	size_t len = 0;

	if (!command_resolve(task) || (folder && !append_name(task)))
		return false;
	data = put_fetch(task, &len);
	if (data == NULL)
		return false;
	/* the file is fetched first, so that a slow host holds no cell */
	if (!run_open(task, "user", ACCESS_WRITE, 3 * FILE_OP_MS))
		command_not_done(task);
	else if (folder || look_at_target(task))
		put_store(task, folder ? path_name(task->path) : "", data, len);
	run_close(task);
	return true;
}

/* ---- /il write ---- */

bool
command_is_editable(const char *text, size_t len)
{
	if (!utf8_valid(text, len) ||
	    text_codepoints(text, len) > EDITOR_POINTS)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* Open the editor with the content of the file. */
static bool
write_open_editor(struct task *task, const struct buf *data)
{
	struct view view = { .kind = JOB_WRITE, .user_id = task->job->user_id };
	auto_free char *title = message_line(_("Edit "), path_name(task->path),
	    TITLE_MOST);
	auto_free char *label = message_line("~/", task->path, TITLE_MOST);
	auto_free char *custom_id = NULL;

	memcpy(view.path, task->path, sizeof(task->path));
	if (view_insert(task->worker->db, &view, &task->err) < 0)
		return false;
	custom_id = action_id(ACTION_WRITE, view.id);
	return command_open_editor(task, custom_id, title,
	    json_pack("[o]",
		editor_input("content", label, NULL, false,
		    data->len > 0 ? buf_str(data) : NULL)));
}

bool
command_read_editable(struct task *task, bool may_miss)
{
	struct cell_request request = {
		.op = OP_READ,
		.path = task->path,
		.max_bytes = EDIT_BYTES,
		.wall_ms = FILE_OP_MS,
	};
	struct collect *collect = &task->collect;
	const struct buf *data = &collect->files[0].data;
	bool good;

	collect_init(collect, 0, EDIT_BYTES);
	/* a cell that has to be started takes longer than Discord waits, but is
	 * warm for the next try */
	run_once(task, "user", &request);
	good = outcome_succeeded(&task->run);
	if (!good)
		collect_release(collect);
	if ((may_miss && outcome_failed_with(&task->run, ERROR_NOT_FOUND)) ||
	    (good && collect->file_count == 1 &&
		command_is_editable(buf_str(data), data->len)))
		return true;
	if (!good && !outcome_failed_with(&task->run, ERROR_TOO_LARGE))
		return command_succeeded(task);
	return command_say(task, SAY_NOT_EDITABLE, phrase_path(task->path).text,
	    NULL);
}

/* Open an editor; a file that does not exist is edited as an empty one. */
bool
cmd_write_edit(struct task *task)
{
	/* a person without a sandbox gets one when the editor comes back */
	return file_resolve_file(task) &&
	    (task->sandbox.id[0] == '\0' ||
		command_read_editable(task, true)) &&
	    write_open_editor(task, &task->collect.files[0].data);
}

bool
cmd_write(struct task *task)
{
	struct cell_request request = { .op = OP_WRITE };
	auto_free char *content = source_content(task->job->text,
	    &request.content_len);

	request.content = content;
	if (!file_resolve_file(task) || !command_do(task, &request))
		return false;
	render_written(&task->env, request.content_len);
	task->outcome = "written";
	return true;
}

/* ---- /il rm ---- */

/* Is the path that of the sandbox itself, or of something above it? */
static bool
names_top(const struct job *job, const char *cwd)
{
	char path[PATH_SIZE];
	enum path_result result = path_resolve(cwd, job->path, path);

	return result == PATH_OK ? path[0] == '\0' :
				   job->path[strspn(job->path, "./~")] == '\0';
}

bool
cmd_rm(struct task *task)
{
	struct cell_request request = {
		.op = OP_REMOVE,
		.recursive = task->job->recursive,
		.wall_ms = FILE_OP_MS,
	};

	if (names_top(task->job, task->sandbox.cwd))
		return command_say(task, SAY_SANDBOX_STAYS, NULL);
	if (!command_resolve(task))
		return false;
	request.path = path_in_packages(task->path);
	if (request.path == NULL) {
		if (!command_do(task, &request))
			return false;
	} else {
		/* The user's cells cannot write to packages, so a cell that
		 * mounts nothing else removes them. */
		run_once(task, "packages", &request);
		if (!command_succeeded(task))
			return false;
	}
	place_leave(task, task->path);
	return command_say(task, SAY_REMOVED_PATH, phrase_path(task->path).text,
	    NULL);
}
