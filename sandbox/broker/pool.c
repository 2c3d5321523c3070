/* SPDX-License-Identifier: MIT */
/*
 * The pool of cells: questions about them, and the fate of idle ones.  A cell
 * that wants to write needs room on the disk; without that it only reads.  Idle
 * cells are evicted for room, end after a while, are replaced when they are
 * worn, and are started ahead.
 */
#include "broker/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "broker/engine.h"

#define ABSENT_MS (INT64_C(600) * 1000)
/* For idle cells to end and their devices to be cleared. */
#define ROOM_WAIT_MS 5000

/* ---- questions ---- */

/* It need not be free. */
bool
pool_matches(const struct container *c, const struct ticket *ticket)
{
	return c->class == ticket->class &&
	    strcmp(c->sandbox, ticket->sandbox) == 0 &&
	    (!ticket->no_imports || c->imports == 0) &&
	    (ticket->any_interpreter ||
		strcmp(c->interpreter.name, ticket->interpreter.name) == 0);
}

/* It must be idle, and unused where its class allows one lease. */
bool
pool_serves(const struct container *c, const struct ticket *ticket)
{
	return c->state == CONTAINER_IDLE && pool_matches(c, ticket) &&
	    (c->class->reuse != REUSE_NEVER || c->runs == 0);
}

/* A cell fits better with more of the run's imports, then with fewer other
 * imports, which make it slower. */
static int
fit(const struct container *c, const struct ticket *ticket)
{
	return PRELOAD_BITS * __builtin_popcount(c->imports & ticket->imports) -
	    __builtin_popcount(c->imports & ~ticket->imports);
}

/* The cell that was used last is better than another that fits alike. */
static bool
is_better(const struct container *c, const struct container *other,
    const struct ticket *ticket)
{
	if (other == NULL || fit(c, ticket) != fit(other, ticket))
		return other == NULL || fit(c, ticket) > fit(other, ticket);
	return c->since_ms > other->since_ms;
}

struct container *
pool_cell_of(const struct pool *pool, const char *sandbox)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (strcmp(c->sandbox, sandbox) == 0)
			return c;
	}
	return NULL;
}

struct container *
pool_container_of(const struct pool *pool, const struct ticket *ticket)
{
	struct container *found = NULL;
	struct container *c;

	if (!ticket->class->in_memory)
		return pool_cell_of(pool, ticket->sandbox);
	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (pool_serves(c, ticket) && is_better(c, found, ticket))
			found = c;
	}
	return found;
}

/* A cell in memory holds nothing that its successor needs: its slot is free as
 * soon as it is ending. */
void
pool_count(const struct pool *pool, struct pool_count *count)
{
	const struct container *c;

	*count = (struct pool_count){ 0 };
	TAILQ_FOREACH(c, &pool->cells->all, link) {
		struct pool_slots *p = &count->slots[c->class->budget];
		bool ending = c->state == CONTAINER_ENDING;

		if (c->state == CONTAINER_GONE)
			continue;
		count->cells++;
		count->leased += c->state == CONTAINER_LEASED;
		count->starting += c->state <= CONTAINER_STARTING;
		count->runs += c->run.running;
		count->runs_in_memory += c->run.running && c->class->in_memory;
		if (ending && c->class->in_memory)
			continue;
		p->taken++;
		p->leased += c->state == CONTAINER_LEASED;
		p->ending += ending;
	}
}

/* The cell will be idle in a while: it is starting, or it is coming back from a
 * lease after which it can be leased again. */
bool
pool_is_coming(const struct container *c)
{
	return c->state <= CONTAINER_STARTING ||
	    (c->state == CONTAINER_RELEASING &&
		c->class->reuse == REUSE_ANYONE &&
		c->isolation == ISOLATION_RUN && !c->retire);
}

/* ---- sessions ---- */

/*
 * A session is an interpreter that a cell keeps for the next run of its
 * sandbox.  The cell reports it when a lease is over, and only where the client
 * had asked for it.  It ends after IL_SESSION_SECONDS without a lease.  There
 * are IL_TUNE_SESSIONS at most; the one used longest ago is evicted first.
 * The reason why a session ended is remembered until its owner comes.
 */
enum kept_end
session_recall(struct pool *pool, const char *sandbox)
{
	for (size_t i = 0; i < SESSION_NOTES; i++) {
		struct session_note *note = &pool->notes[i];

		if (strcmp(note->sandbox, sandbox) == 0) {
			*note->sandbox = '\0';
			return note->why;
		}
	}
	return KEPT_RESTARTED;
}

void
session_note_end(struct pool *pool, struct container *c)
{
	struct session_note *note;

	if (!c->has_session)
		return;
	c->has_session = false;
	(void)session_recall(pool, c->sandbox);
	note = &pool->notes[pool->note_next++ % SESSION_NOTES];
	memcpy(note->sandbox, c->sandbox, sizeof(note->sandbox));
	note->why = c->session_end != 0 ? c->session_end : KEPT_DIED;
	log_debug("session ended: %d cell=%s sandbox=%s", (int)note->why,
	    c->name, c->sandbox);
}

/* ---- cells with sessions ---- */

void
cell_end_idle(struct container *c, enum kept_end why)
{
	c->session_end = why;
	container_end(c, false);
}

/* Does c end before the other, where one of two idle cells must?  Standby cells
 * go last, as any sandbox can use one, and cells with a session before them. */
static bool
is_evicted_before(const struct container *c, const struct container *other)
{
	if (other == NULL || c->standby != other->standby)
		return other == NULL || other->standby;
	if (c->has_session != other->has_session)
		return other->has_session;
	return c->since_ms < other->since_ms;
}

struct container *
pool_oldest_idle(const struct pool *pool, enum cell_budget budget, bool session)
{
	struct container *oldest = NULL;
	struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (c->state == CONTAINER_IDLE && c->class->budget == budget &&
		    (!session || c->has_session) &&
		    is_evicted_before(c, oldest))
			oldest = c;
	}
	return oldest;
}

/* ---- modules ---- */

void
preload_note(struct preload *p, uint32_t mask, int64_t now_ms)
{
	for (size_t i = 0; i < PRELOAD_BITS; i++) {
		if ((mask & preload_bit(i)) == 0)
			continue;
		p->asked_ms[i][1] = p->asked_ms[i][0];
		p->asked_ms[i][0] = now_ms;
	}
}

void
preload_note_absent(struct preload *p, uint32_t mask, int64_t now_ms)
{
	for (size_t i = 0; i < PRELOAD_BITS; i++)
		if ((mask & preload_bit(i)) != 0)
			p->absent_ms[i] = now_ms + ABSENT_MS;
}

uint32_t
preload_wanted(const struct preload *p, const struct config *config,
    int64_t now_ms)
{
	int64_t rest_ms = config->warm_seconds * 1000;
	uint32_t mask = 0;

	if (!preload_is_auto(config->preload))
		return *preload_list(config->preload) == '\0' ? 0 : PRELOAD_ALL;
	for (size_t i = 0; i < PRELOAD_BITS; i++)
		if (p->asked_ms[i][1] != 0 &&
		    now_ms - p->asked_ms[i][1] < rest_ms &&
		    now_ms >= p->absent_ms[i])
			mask |= preload_bit(i);
	return mask;
}

/* ---- room ---- */

/* Bytes that could come free on a file system. */
struct yield {
	int64_t ending; /* of cells that are ending or being released */
	int64_t idle;	/* of idle cells, which can be evicted */
	struct container *oldest; /* the idle cell that is evicted first */
};

static void
yield_measure(const struct pool *pool, const struct container *except,
    dev_t device, struct yield *yield)
{
	struct container *c;

	*yield = (struct yield){ .ending = 0 };
	TAILQ_FOREACH(c, &pool->cells->all, link) {
		const struct reservation *r = c->reserved[0];

		if (c == except || r == NULL || !r->grows ||
		    r->device != device)
			continue;
		if (c->state == CONTAINER_RELEASING ||
		    c->state == CONTAINER_ENDING)
			yield->ending += reservation_bytes(r);
		if (c->state != CONTAINER_IDLE)
			continue;
		yield->idle += reservation_bytes(r);
		if (is_evicted_before(c, yield->oldest))
			yield->oldest = c;
	}
}

enum admission
pool_make_room(struct pool *pool, int fd, int64_t bytes,
    const struct container *except, int64_t since_ms)
{
	int64_t due = since_ms + ROOM_WAIT_MS;
	struct ledger_space space;
	struct yield yield;
	struct err err;

	if (ledger_measure(pool->host->ledger, fd, &space, &err) != 0) {
		log_err("%s", err.text);
		return ADMIT_NEVER;
	}
	if (ledger_has_room(&space, bytes))
		return ADMIT;
	yield_measure(pool, except, space.device, &yield);
	/* Would there be room if all cells that can end were gone? */
	space.reserved -= space.leaving + yield.ending + yield.idle;
	if (clock_monotonic_ms() >= due || !ledger_has_room(&space, bytes))
		return ADMIT_NEVER;
	/* Idle cells end, until the ending ones make enough room. */
	space.reserved += yield.idle;
	while (!ledger_has_room(&space, bytes) && yield.oldest != NULL) {
		space.reserved -= reservation_bytes(yield.oldest->reserved[0]);
		log_debug("making room on the disk cell=%s",
		    yield.oldest->name);
		cell_end_idle(yield.oldest, KEPT_GAVE_WAY);
		yield_measure(pool, except, space.device, &yield);
	}
	host_schedule(pool->host, due);
	return ADMIT_LATER;
}

/* ---- leases ---- */

/* Tidying up and reading need no new blocks. */
static bool
wants_to_write(const struct ticket *ticket)
{
	return ticket->access == ACCESS_WRITE || ticket->access == ACCESS_ANY;
}

/* Decide for a ticket that wants to write: without room, ACCESS_ANY becomes
 * read access. */
static enum admission
admission_by(enum admission room, const struct ticket *ticket, bool *writable)
{
	*writable = room == ADMIT;
	return room == ADMIT_NEVER && ticket->access == ACCESS_ANY ? ADMIT :
								     room;
}

enum admission
admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted)
{
	struct reservation *r = c->reserved[0];
	enum admission admission = ADMIT;
	bool writable = true;

	*granted = ticket->access == ACCESS_LOOK ? ACCESS_TIDY : ticket->access;
	/* without a reservation there is nothing to write to */
	if (ticket->class->in_memory || r == NULL)
		return ADMIT;
	if (wants_to_write(ticket)) {
		admission = admission_by(pool_make_room(pool, r->fd,
					     reservation_more(r), c,
					     ticket->since_ms),
		    ticket, &writable);
		*granted = writable ? ACCESS_WRITE : ACCESS_READ;
	}
	if (admission != ADMIT)
		return admission;
	if (c->writable != writable)
		return ADMIT_OTHERWISE;
	if (*granted == ACCESS_WRITE)
		r->grows = true;
	return ADMIT;
}

enum admission
admission_to_new(struct pool *pool, const struct ticket *ticket, bool *writable,
    bool *grows)
{
	enum admission admission;
	struct err err;
	auto_close int fd = -1;

	*writable = true;
	*grows = false;
	if (ticket->class->in_memory || !wants_to_write(ticket))
		return ADMIT;
	fd = workspace_volume_open(pool->host->base, ticket->sandbox,
	    class_volume(ticket->class, 0, ticket->packages), &err);
	if (fd < 0)
		return ADMIT; /* its start will report the failure */
	admission = admission_by(pool_make_room(pool, fd,
				     ledger_volume_bytes(fd), NULL,
				     ticket->since_ms),
	    ticket, writable);
	*grows = *writable;
	return admission;
}

/* ---- warm cells ---- */

/* Modules that a warm cell shall have imported.  A single slot goes to modules
 * that the operator has named, and otherwise to a cell without imports. */
static uint32_t
wanted(const struct pool *pool)
{
	const struct config *config = pool->host->config;

	if (preload_is_auto(config->preload) &&
	    (config->api_warm == 0 || config->api_cells == 1))
		return 0;
	return preload_wanted(&pool->preload, config, clock_monotonic_ms());
}

/* A kind of warm cells: those with imports, or those without. */
struct kind {
	struct ticket ticket; /* such a cell serves it */
	int64_t count;	      /* of the cells that stay warm */
};

static struct kind
kind_of(const struct pool *pool, bool imports)
{
	const struct config *config = pool->host->config;
	uint32_t mask = wanted(pool);
	int64_t split = mask != 0 && config->api_warm > 0;
	int64_t most = config->api_cells - split;
	struct kind kind = { .ticket = { .class = class_find("api"),
				 .imports = imports ? mask : 0 },
		.count = imports	    ? split :
		    config->api_warm < most ? config->api_warm :
					      most };

	(void)images_find(config->sandbox_images, "", &kind.ticket.interpreter);
	return kind;
}

static bool
is_of_interpreter(const struct ticket *ticket, const struct kind *kind)
{
	return strcmp(ticket->interpreter.name,
		   kind->ticket.interpreter.name) == 0;
}

void
warm_note(struct pool *pool, const struct ticket *ticket)
{
	struct kind kind = kind_of(pool, false);

	if (ticket->class == kind.ticket.class &&
	    is_of_interpreter(ticket, &kind))
		preload_note(&pool->preload, ticket->imports,
		    clock_monotonic_ms());
}

uint32_t
warm_imports(const struct pool *pool, const struct ticket *ticket)
{
	struct kind kind = kind_of(pool, true);
	bool ready = is_of_interpreter(ticket, &kind);

	if (ticket->class->reuse != REUSE_ANYONE ||
	    (ticket->imports & kind.ticket.imports) == 0 ||
	    (ready && ticket->client != NULL && kind.count != 0) ||
	    (!ready && preload_is_auto(pool->host->config->preload)))
		return 0;
	return kind.ticket.imports;
}

/* Is the cell one of those that stay warm?  The ones used last are. */
static bool
stays_warm(const struct pool *pool, const struct container *c)
{
	const struct container *other;
	struct kind kind = kind_of(pool, c->imports != 0);
	int64_t before = 0;

	if (!pool_matches(c, &kind.ticket))
		return false;
	TAILQ_FOREACH(other, &pool->cells->all, link) {
		if (other != c && pool_serves(other, &kind.ticket) &&
		    (other->imports != 0) == (c->imports != 0) &&
		    (other->since_ms > c->since_ms ||
			(other->since_ms == c->since_ms &&
			    other->number < c->number)))
			before++;
	}
	return before < kind.count;
}

/* Is there a derived image by now?  A cell that serves many clients is worth
 * replacing. */
static bool
is_outdated(const struct pool *pool, const struct container *c)
{
	return (c->class->reuse == REUSE_ANYONE || c->standby) &&
	    c->state >= CONTAINER_IDLE && !c->derived &&
	    strcmp(images_name(pool->host->images, c->interpreter.image),
		c->interpreter.image) != 0;
}

/* End the oldest of so many idle cells, with and without a session, that are
 * beyond the settings.  Only cells of people's sandboxes have sessions
 * (docker.c). */
static void
end_surplus(struct pool *pool, int64_t sessions, int64_t idle)
{
	const struct config *config = pool->host->config;

	for (; sessions > config->sessions; sessions--)
		cell_end_idle(pool_oldest_idle(pool, BUDGET_SANDBOXES, true),
		    KEPT_GAVE_WAY);
	for (; idle > config->warm_cells; idle--)
		container_end(pool_oldest_idle(pool, BUDGET_SANDBOXES, false),
		    false);
}

void
warm_trim(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t sessions = 0;
	int64_t idle = 0;
	struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		int64_t rest_s = c->has_session ? config->session_seconds :
						  config->warm_seconds;
		int64_t due_ms = c->since_ms + rest_s * 1000;
		bool outdated = is_outdated(pool, c);
		bool stays = c->standby || stays_warm(pool, c);

		c->retire = c->retire || outdated; /* after its lease */
		if (c->state != CONTAINER_IDLE)
			continue;
		if (c->class->reuse == REUSE_NEVER || outdated ||
		    (!stays && clock_monotonic_ms() >= due_ms)) {
			cell_end_idle(c, KEPT_RESTED);
			continue;
		}
		if (!stays)
			host_schedule(pool->host, due_ms);
		else if (c->imports != 0 && preload_is_auto(config->preload))
			host_schedule(pool->host,
			    clock_monotonic_ms() + config->warm_seconds * 1000);
		sessions += c->has_session;
		idle += c->class->reuse == REUSE_SANDBOX && !c->has_session &&
		    !c->standby;
	}
	end_surplus(pool, sessions, idle);
}

/* The cell has served as many runs as it may, or lacks imports that are wanted
 * by now: another cell shall replace it. */
static bool
is_worn(const struct pool *pool, const struct container *c)
{
	return c->class->reuse == REUSE_ANYONE &&
	    (c->runs >= c->host->config->api_runs ||
		(c->imports != 0 && (wanted(pool) & ~c->imports) != 0));
}

/* A worn cell may stay until its replacement is ready.  False: the replacement
 * is idle, or none can come. */
static bool
may_stay(const struct pool *pool, const struct container *worn,
    const struct ticket *kind, bool room)
{
	const struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (is_worn(pool, c) ||
		    (c->imports != 0) != (worn->imports != 0) ||
		    !pool_matches(c, kind))
			continue;
		if (pool_serves(c, kind))
			return false;
		room = room || pool_is_coming(c);
	}
	return room;
}

void
warm_end_worn(struct pool *pool)
{
	const struct config *config = pool->host->config;
	struct pool_count count;
	struct container *c;
	bool room;

	pool_count(pool, &count);
	room = count.slots[BUDGET_RUNS].taken < config->api_cells;
	TAILQ_FOREACH(c, &pool->cells->all, link) {
		struct kind kind;

		if (c->state != CONTAINER_IDLE || !is_worn(pool, c))
			continue;
		kind = kind_of(pool, c->imports != 0);
		if (kind.count == 0 || !pool_matches(c, &kind.ticket) ||
		    c->runs >= 2 * config->api_runs ||
		    !may_stay(pool, c, &kind.ticket, room))
			container_end(c, false);
	}
}

/* Number of warm cells, ready or coming, less the cells that tickets wait for.
 */
static int64_t
count_ready(const struct pool *pool, const struct kind *kind, bool imports)
{
	const struct container *c;
	const struct ticket *ticket;
	int64_t n = 0;

	TAILQ_FOREACH(c, &pool->cells->all, link)
		n += (c->state == CONTAINER_IDLE || pool_is_coming(c)) &&
		    (!is_worn(pool, c) || c->state <= CONTAINER_STARTING) &&
		    (c->imports != 0) == imports &&
		    pool_matches(c, &kind->ticket);
	/* a waiting ticket takes the first cell that comes up */
	TAILQ_FOREACH(ticket, &pool->tickets, link)
		n -= !imports && ticket->class == kind->ticket.class &&
		    is_of_interpreter(ticket, kind);
	return n;
}

/* Start one more warm cell of the kind where one is missing.  True: one was
 * begun. */
static bool
refill_kind(struct pool *pool, bool imports)
{
	struct kind kind = kind_of(pool, imports);

	if (count_ready(pool, &kind, imports) >= kind.count)
		return false;
	container_new(pool->host, &kind.ticket,
	    warm_imports(pool, &kind.ticket), true, false);
	host_schedule(pool->host, 0); /* there may be another one to start */
	return true;
}

/* May one more mounter be started now?  The end of a mounter schedules a pass.
 */
static bool
mounter_may_start(struct pool *pool)
{
	const struct container *m;

	if (pool->cells->unmountable)
		return false;
	TAILQ_FOREACH(m, &pool->cells->mounters, link) {
		if (m->cell == NULL)
			return false;
	}
	if (!pause_holds(&pool->cells->mount_pause, clock_monotonic_ms()))
		return true;
	host_schedule(pool->host, pool->cells->mount_pause.until_ms);
	return false;
}

/* Begin another standby cell where there are fewer than IL_TUNE_SPARE_CELLS and
 * no ticket waits. */
static void
standby_refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	const struct container *c;
	struct pool_count count;
	struct ticket kind = { .class = class_find("user") };
	int64_t count_standby = 0;

	TAILQ_FOREACH(c, &pool->cells->all, link)
		count_standby += c->standby && c->state <= CONTAINER_IDLE;
	pool_count(pool, &count);
	if (count_standby >= config->spare_cells || pool->waiting > 0 ||
	    count.starting > 0 ||
	    count.slots[BUDGET_SANDBOXES].taken >= config->cells ||
	    !mounter_may_start(pool))
		return;
	(void)images_find(config->chat_images, "", &kind.interpreter);
	container_new(pool->host, &kind, 0, true, false);
}

/* Waiting tickets come first: no warm cell is begun while the engine has as
 * many starts as it may; after failures that is one. */
void
warm_refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;

	pool_count(pool, &count);
	if (count.starting >= most ||
	    (config->derive && !pool->host->images->inspected) ||
	    engine_state(pool->host->engine) != ENGINE_READY)
		return;
	if (clock_monotonic_ms() < pool->warm_not_ms) {
		host_schedule(pool->host, pool->warm_not_ms);
		return;
	}
	if (config->api_warm > 0 &&
	    count.slots[BUDGET_RUNS].taken < config->api_cells &&
	    (refill_kind(pool, false) || refill_kind(pool, true)))
		return;
	standby_refill(pool);
}
