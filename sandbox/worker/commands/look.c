/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <stdio.h>
#include <string.h>

#include "store/view.h"

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
static int
note_view(struct task *task, struct render_listing *listing, struct err *err)
{
	struct db *db = task->worker->db;
	struct view view = {
		.kind = JOB_LOOK,
		.page = listing->page,
		.user_id = task->job->user_id,
	};

	listing->view_id = task->job->view_id;
	if (listing->view_id != 0)
		return view_set_page(db, listing->view_id, listing->page, err);
	if (listing->pages <= 1)
		return 0;
	/* its buttons ask for this path again */
	memcpy(view.path, task->path, sizeof(task->path));
	if (view_insert(db, &view, err) < 0)
		return -1;
	listing->view_id = view.id;
	return 0;
}

/* Change the directory and offer a button back, or offer a button to the
 * top. */
static int
go_there(struct task *task, struct render_listing *listing, struct err *err)
{
	const char *cwd = task->sandbox.cwd;

	listing->moved = strcmp(task->path, cwd) != 0;
	if (!listing->moved && *cwd == '\0')
		return 0;
	(void)snprintf(listing->back, sizeof(listing->back), "%s",
	    listing->moved ? cwd : "");
	listing->back_id = place_make_way(task, JOB_LOOK, listing->back, err);
	if (listing->back_id < 0)
		return -1;
	if (!listing->moved)
		return 0;
	listing->moved = place_set(task, task->path);
	/* without a change there is nothing to go back to */
	if (!listing->moved)
		listing->back_id = 0;
	task->place_told = listing->back_id != 0;
	return 0;
}

/* The directory becomes the current one, and gets a view when it has pages. */
static int
show_directory(struct task *task, struct render_listing *listing,
    struct err *err)
{
	/* paging through another directory's listing does not go there */
	if (task->job->view_id == 0 && go_there(task, listing, err) < 0)
		return -1;
	if (note_view(task, listing, err) < 0)
		return -1;
	listing->path = task->path;
	listing->collect = &task->collect;
	listing->result = &task->run.result;
	render_listing(&task->message, listing, task->worker->config);
	task->outcome = "listed";
	return 0;
}

static int
show_file(struct task *task, struct err *err)
{
	struct collected_file *file = &task->collect.files[0];
	int64_t total = task->run.result.total;

	if (task->collect.file_count != 1)
		return err_set(err, ERR_PROTOCOL, "the cell sent no file");
	render_file(&task->message, file,
	    total > file->size ? total : file->size, &task->env);
	task->outcome = "shown";
	return 0;
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
int
cmd_look(struct task *task, struct err *err)
{
	struct render_listing listing;

	collect_init(&task->collect, 0, (size_t)task->env.file_most);
	if (!command_resolve(task) || !command_look(task, look_read, &listing))
		return 0;
	return listing.pages > 0 ? show_directory(task, &listing, err) :
				   show_file(task, err);
}
