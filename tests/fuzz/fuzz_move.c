/* SPDX-License-Identifier: MIT */
/* Any bytes as the head of a parcel and as a person's rows: what is taken keeps
 * the promises of the headers, and is a person's alone. */
#include "fuzz.h"

#include <unistd.h>

#include "base/basics.h"
#include "move/parcel.h"
#include "store/db.h"
#include "store/moves.h"

static const char *const ends[] = { "", "-wal", "-shm", "-turn" };

static void
check_head(const struct parcel_head *head)
{
	if (!parcel_head_is_good(head))
		return;
	fuzz_holds(strcspn(head->node, " \n\x7f") == strlen(head->node) &&
		strlen(head->node) <= PARCEL_NODE_MAX && head->rows >= 0 &&
		head->rows <= (int64_t)PERSON_ROWS_MAX && head->manifest >= 0 &&
		head->manifest <= (int64_t)PARCEL_MANIFEST_MAX &&
		head->blocks >= 0 && head->blocks <= PARCEL_BLOCKS_MAX,
	    "no more than there may be");
	fuzz_holds(parcel_size(head) > 0, "so many bytes can be read");
}

/* A database that ends with this process. */
static struct db *
database(void)
{
	static struct db *db;
	char folder[] = "/tmp/fuzz-move-XXXXXX";
	char path[64];
	struct err err = { 0 };

	if (db != NULL)
		return db;
	fuzz_holds(mkdtemp(folder) != NULL, "a folder");
	(void)snprintf(path, sizeof(path), "%s/db", folder);
	db = db_open(path, DB_ADMIN, &err);
	fuzz_holds(db != NULL && db_migrate(db, &err) >= 0, "a database");
	db_close(db);
	db = db_open(path, DB_NODE, &err);
	fuzz_holds(db != NULL, "that opens");
	/* it lives on without its names */
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		(void)snprintf(path, sizeof(path), "%s/db%s", folder, ends[i]);
		(void)unlink(path);
	}
	(void)rmdir(folder);
	return db;
}

static void
check_rows(const char *rows)
{
	struct db *db = database();
	struct person_sandbox sandbox;
	struct err err;

	if (person_look(db, rows, &sandbox, &err) != 0)
		return;
	fuzz_holds(strlen(sandbox.id) == 0 ||
		(strlen(sandbox.id) == SANDBOX_ID_LEN &&
		    strspn(sandbox.id, "0123456789abcdef") == SANDBOX_ID_LEN),
	    "an id that leads nowhere");
	fuzz_holds(person_put(db, 7, rows, false, &err) == 0 ||
		err.code == ERR_INPUT,
	    "what is wrong is the rows' fault");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parcel_head head = { .rows = 0 };
	char *text = fuzz_text(data, size);

	memcpy(&head, data, size < sizeof(head) ? size : sizeof(head));
	check_head(&head);
	check_rows(text);
	free(text);
	return 0;
}
