#include "command.h"

#include <string.h>

#include "../../base/config.h"
#include "../../base/err.h"

#include "../../store/view.h"
#include "../render/collect.h"
#include "../worker.h"

#define PAGE_ENTRIES COLLECT_ENTRIES

/* A look at a path: a directory is listed, a file is shown. */
struct look {
	struct task *task;
	struct run run;
	struct collect collect;
	struct render_env env;
	char path[PATH_SIZE];
	int64_t page;
	int64_t pages;
};

static bool
request(struct look *look, const struct cell_request *request)
{
	struct cell_sink sink = { .event = collect_event,
		.arg = &look->collect };

	collect_reset(&look->collect);
	return run_request(&look->run, request, FILE_OP_MS, &sink);
}

static bool
list(struct look *look)
{
	struct cell_request list = {
		.op = OP_LIST,
		.path = look->path,
		.offset = (look->page - 1) * PAGE_ENTRIES,
		.count = PAGE_ENTRIES,
		.wall_ms = FILE_OP_MS,
	};

	return request(look, &list);
}

static bool
read_file(struct look *look)
{
	struct cell_request read = {
		.op = OP_READ,
		.path = look->path,
		.max_bytes = look->env.file_most,
		.cut = true,
		.wall_ms = FILE_OP_MS,
	};

	return request(look, &read);
}

/* A page past the end becomes the last one. */
static bool
list_page(struct look *look)
{
	if (!list(look) || !outcome_succeeded(&look->run.outcome))
		return false;
	look->pages = look->run.outcome.result.total / PAGE_ENTRIES +
	    (look->run.outcome.result.total % PAGE_ENTRIES != 0);
	if (look->pages == 0)
		look->pages = 1;
	if (look->page <= look->pages)
		return true;
	look->page = look->pages;
	return list(look) && outcome_succeeded(&look->run.outcome);
}

/* The row that the buttons name.  A button that was pressed has one already. */
static int
note_view(struct look *look, int64_t *view_id, struct err *err)
{
	struct task *task = look->task;
	struct view view = { .kind = JOB_LOOK,
		.page = look->page,
		.user_id = task->job->user_id };

	*view_id = task->job->view_id;
	if (*view_id != 0)
		return view_set_page(task->worker->db, *view_id, look->page,
			   err) < 0 ?
		    -1 :
		    0;
	if (look->pages <= 1)
		return 0;
	memcpy(view.path, look->path, sizeof(look->path));
	if (view_insert(task->worker->db, &view, err) < 0)
		return -1;
	*view_id = view.id;
	return 0;
}

static int
show_directory(struct look *look, struct err *err)
{
	struct task *task = look->task;
	const struct cell_result *result = &look->run.outcome.result;
	struct render_listing listing = {
		.path = look->path,
		.entries = look->collect.entries,
		.count = look->collect.entry_count,
		.total = result->total,
		.page = look->page,
		.pages = look->pages,
		.used_bytes = result->used_bytes,
		.used_files = result->used_files,
	};

	/* paging through another directory's listing does not go there */
	if (task->job->view_id == 0 &&
	    sandbox_set_cwd(task->worker->db, task->sandbox.id, look->path,
		err) < 0)
		return -1;
	if (note_view(look, &listing.view_id, err) < 0)
		return -1;
	render_listing(&task->message, &listing, task->worker->config);
	command_set_outcome(task, "listed");
	return 0;
}

static int
show_file(struct look *look, struct err *err)
{
	struct collect *c = &look->collect;
	int64_t total = look->run.outcome.result.total;

	if (c->file_count != 1)
		return err_set(err, ERR_PROTOCOL, "the cell sent no file");
	if (total < c->files[0].size)
		total = c->files[0].size;
	render_file(&look->task->message, &c->files[0], total, &look->env);
	command_set_outcome(look->task, "shown");
	return 0;
}

static int
look_at(struct look *look, struct err *err)
{
	const struct run_outcome *outcome = &look->run.outcome;
	int result = 0;

	if (list_page(look))
		result = show_directory(look, err);
	else if (outcome_failed_with(outcome, ERROR_NOT_DIRECTORY) &&
	    read_file(look) && outcome_succeeded(outcome))
		result = show_file(look, err);
	else if (!look->task->taken)
		command_not_done(look->task, outcome, look->path);
	command_note_usage(look->task, outcome);
	return result;
}

int
cmd_look(struct task *task, struct err *err)
{
	struct look look = {
		.task = task,
		.env = command_env(task),
		.page = task->job->page > 0 ? task->job->page : 1,
	};
	int result = 0;

	if (!command_resolve(task, task->job->path, look.path))
		return 0;
	collect_init(&look.collect, 0, (size_t)look.env.file_most);
	if (run_open(&look.run, task, "user", ACCESS_TIDY, 3 * FILE_OP_MS,
		config_lease_wait_ms(task->worker->config)))
		result = look_at(&look, err);
	else
		command_not_done(task, &look.run.outcome, look.path);
	run_close(&look.run);
	collect_release(&look.collect);
	return result;
}
