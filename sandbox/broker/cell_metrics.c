/* SPDX-License-Identifier: MIT */
#include "cell_metrics.h"

#include "../base/buf.h"
#include "../base/clock.h"

static const char *const outcomes[WAYS] = {
	[WAY_WARM] = "warm",
	[WAY_SPARE] = "spare",
	[WAY_COLD] = "cold",
	[WAY_LOOK] = "look",
	[WAY_GONE] = "gone",
	[WAY_REFUSED + REFUSAL_INPUT] = "input",
	[WAY_REFUSED + REFUSAL_BUSY] = "busy",
	[WAY_REFUSED + REFUSAL_FULL] = "full",
	[WAY_REFUSED + REFUSAL_ENGINE] = "engine",
	[WAY_REFUSED + REFUSAL_IMAGE] = "image",
	[WAY_REFUSED + REFUSAL_NO_WORKSPACE] = "workspace",
	[WAY_REFUSED + REFUSAL_DISK] = "disk",
	[WAY_REFUSED + REFUSAL_START] = "start",
	[WAY_REFUSED + REFUSAL_INTERPRETER] = "interpreter",
	[WAY_REFUSED + REFUSAL_SANDBOXES] = "sandboxes",
};

/* ---- counting ---- */

void
cell_metrics_lease(struct cell_metrics *m, const struct cell_class *class,
    enum lease_way way, int64_t since_ms)
{
	m->leases[class_index(class)][way]++;
	if (way < WAY_GONE)
		histogram_observe(&m->waited[class_index(class)],
		    (clock_monotonic_ms() - since_ms) * 1000);
}

void
cell_metrics_start(struct cell_metrics *m, const struct cell_class *class,
    bool up, int64_t took_ms)
{
	size_t i = class_index(class);

	m->starts[i][!up]++;
	if (up)
		histogram_observe(&m->start[i], took_ms * 1000);
}

void
cell_metrics_out_of_memory(struct cell_metrics *m,
    const struct cell_class *class)
{
	m->out_of_memory[class_index(class)]++;
}

/* ---- telling ---- */

struct exposition_label
cell_metrics_classes(const char *names[CLASS_MAX])
{
	const struct cell_class *class;
	size_t count = 0;

	for (; (class = class_at(count)) != NULL; count++)
		names[count] = class->name;
	return (struct exposition_label){ "class", names, count };
}

void
cell_metrics_add(struct buf *out, const struct cell_metrics *m)
{
	static const char *const up[] = { "up", "failed" };
	const char *names[CLASS_MAX];
	const struct exposition_label class = cell_metrics_classes(names);
	const struct exposition_label way = { "outcome", outcomes, WAYS };
	const struct exposition_label start = { "outcome", up, 2 };

	exposition_table(out, "inline_leases_total", "counter",
	    "Cells that were asked for, by class and answer.", &class, &way,
	    &m->leases[0][0]);
	exposition_histograms(out, "inline_lease_wait_seconds",
	    "How long who got a cell had waited for it.", &class, m->waited);
	exposition_table(out, "inline_cell_starts_total", "counter",
	    "Cells that were started, by class and whether they came up.",
	    &class, &start, &m->starts[0][0]);
	exposition_histograms(out, "inline_cell_start_seconds",
	    "From docker run until the cell was up.", &class, m->start);
	exposition_table(out, "inline_cell_memory_ends_total", "counter",
	    "Cells that the memory of their run has ended.", NULL, &class,
	    m->out_of_memory);
}
