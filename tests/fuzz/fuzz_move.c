/* SPDX-License-Identifier: MIT */
/* Any bytes as the head of a parcel and as a person's rows: what is taken keeps
 * the promises of the headers. */
#include "fuzz.h"

#include "sandbox/base/err.h"
#include "sandbox/move/parcel.h"
#include "sandbox/store/person.h"

static void
check_head(const char *text)
{
	struct parcel_head head;
	struct parcel_head second;
	char again[PARCEL_HEAD];
	struct err err;

	if (parcel_head_read(&head, text, &err) != 0)
		return;
	fuzz_holds(strlen(head.node) <= PARCEL_NODE_MAX &&
		head.rows <= PERSON_ROWS_MAX &&
		head.manifest <= PARCEL_MANIFEST_MAX && head.blocks >= 0 &&
		head.blocks <= PARCEL_BLOCKS_MAX,
	    "no more than there may be");
	parcel_head_print(&head, again);
	fuzz_holds(parcel_head_read(&second, again, &err) == 0 &&
		strcmp(second.node, head.node) == 0 &&
		parcel_size(&second) == parcel_size(&head),
	    "what is written is read");
}

static void
check_rows(const char *rows, size_t size)
{
	struct person_sandbox sandbox;
	struct err err;

	if (person_check(rows, size, &sandbox, &err) != 0)
		return;
	fuzz_holds(strlen(sandbox.id) == 0 ||
		(strlen(sandbox.id) == SANDBOX_ID_LEN &&
		    strspn(sandbox.id, "0123456789abcdef") == SANDBOX_ID_LEN),
	    "an id that leads nowhere");
	fuzz_holds(!sandbox.active || sandbox.id[0] != '\0', "of a sandbox");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char head[PARCEL_HEAD] = "";

	memcpy(head, data, size < sizeof(head) ? size : sizeof(head));
	check_head(head);
	check_rows((const char *)data, size);
	return 0;
}
