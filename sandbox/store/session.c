/* SPDX-License-Identifier: MIT */
#include "store/session.h"

#include "store/db.h"
#include "store/row.h"

#define OF_SESSION(member) ROW_FIELD(struct session, member)

static const struct row_field fields[] = { OF_SESSION(started_at),
	OF_SESSION(kept_at), OF_SESSION(ended), OF_SESSION(names),
	OF_SESSION(bytes), ROW_END };

int
session_find(struct db *db, const char *sandbox, struct session *session,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SESSION_FIND);
	int row;

	*session = (struct session){ 0 };
	db_bind_text(s, ":sandbox", sandbox);
	row = db_step(db, s, err);
	if (row == 1)
		row_read(s, fields, session);
	return row < 0 ? -1 : 0;
}

int
session_put(struct db *db, const char *sandbox, const struct session *session,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SESSION_PUT);

	db_bind_text(s, ":sandbox", sandbox);
	row_bind(s, fields, session);
	/* a power cut ends what it is about, too */
	return db_run_quick(db, s, err) < 0 ? -1 : 0;
}
