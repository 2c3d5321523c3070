/* SPDX-License-Identifier: MIT */
#include "holder.h"

#include <stddef.h>

#include "driver.h"

bool
holder_is_shared(const struct db *db)
{
	return db->driver->hold != NULL;
}

int
holder_take(struct db *db, const char *node, int64_t slot, int64_t *holder,
    struct err *err)
{
	if (holder_is_shared(db))
		return db->driver->hold(db, node, slot, holder, err);
	*holder = slot;
	return 0;
}

int
holder_take_over(struct db *db, const char *node, int64_t slot, int64_t holder,
    struct err *err)
{
	return holder_is_shared(db) ?
	    db->driver->take_over(db, node, slot, holder, err) :
	    1;
}

void
holder_notify(struct db *db, int64_t home)
{
	if (holder_is_shared(db))
		db->driver->notify(db, home, 0);
}

int
holder_listen(struct db *db, struct err *err)
{
	return holder_is_shared(db) ? db->driver->listen(db, err) : 0;
}

bool
holder_heard(struct db *db, int *fd)
{
	*fd = -1;
	return holder_is_shared(db) && db->driver->heard(db, fd);
}

void
holder_cancel(struct db *db, int64_t home, int64_t job_id)
{
	if (holder_is_shared(db))
		db->driver->notify(db, home, job_id);
}

int64_t
holder_heard_cancel(struct db *db)
{
	return holder_is_shared(db) ? db->driver->heard_cancel(db) : 0;
}
