/* SPDX-License-Identifier: MIT */
#include "cell_metrics.h"

#include <stdio.h>

#include "../base/buf.h"
#include "../base/clock.h"

static const char *const outcomes[] = {
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
#define OUTCOMES (sizeof(outcomes) / sizeof(outcomes[0]))

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

	m->starts[i][up]++;
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

static void
add_leases(struct buf *out, const struct cell_metrics *m)
{
	static const char total[] = "inline_leases_total";
	static const char wait[] = "inline_lease_wait_seconds";
	const struct cell_class *class;
	char labels[64];

	exposition_head(out, total, "counter",
	    "Cells that were asked for, by class and answer.");
	for (size_t i = 0; (class = class_at(i)) != NULL; i++)
		for (size_t k = 0; k < OUTCOMES; k++) {
			if (outcomes[k] == NULL)
				continue;
			(void)snprintf(labels, sizeof(labels),
			    "class=\"%s\",outcome=\"%s\"", class->name,
			    outcomes[k]);
			exposition_number(out, total, labels, m->leases[i][k]);
		}
	exposition_head(out, wait, "histogram",
	    "How long who got a cell had waited for it.");
	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		(void)snprintf(labels, sizeof(labels), "class=\"%s\"",
		    class->name);
		exposition_histogram(out, wait, labels, &m->waited[i]);
	}
}

static void
add_starts(struct buf *out, const struct cell_metrics *m)
{
	static const char total[] = "inline_cell_starts_total";
	static const char took[] = "inline_cell_start_seconds";
	static const char memory[] = "inline_cell_memory_ends_total";
	const struct cell_class *class;
	char labels[64];

	exposition_head(out, total, "counter",
	    "Cells that were started, by class and whether they came up.");
	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		(void)snprintf(labels, sizeof(labels),
		    "class=\"%s\",outcome=\"up\"", class->name);
		exposition_number(out, total, labels, m->starts[i][true]);
		(void)snprintf(labels, sizeof(labels),
		    "class=\"%s\",outcome=\"failed\"", class->name);
		exposition_number(out, total, labels, m->starts[i][false]);
	}
	exposition_head(out, took, "histogram",
	    "From docker run until the cell was up.");
	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		(void)snprintf(labels, sizeof(labels), "class=\"%s\"",
		    class->name);
		exposition_histogram(out, took, labels, &m->start[i]);
	}
	exposition_head(out, memory, "counter",
	    "Cells that the memory of their run has ended.");
	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		(void)snprintf(labels, sizeof(labels), "class=\"%s\"",
		    class->name);
		exposition_number(out, memory, labels, m->out_of_memory[i]);
	}
}

void
cell_metrics_add(struct buf *out, const struct cell_metrics *m)
{
	add_leases(out, m);
	add_starts(out, m);
}
