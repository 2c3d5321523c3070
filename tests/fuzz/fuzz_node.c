/* SPDX-License-Identifier: MIT */
/* Any bytes as the head of another node's answer, and as the table of nodes:
 * what is taken keeps the promises of the headers. */
#include "fuzz.h"

#include "base/basics.h"
#include "base/utf8.h"
#include "protocol/node_ask.h"
#include "protocol/node_table.h"

static void
check_answer(const char *text, size_t size)
{
	auto_buf struct buf again = BUF_INIT(65536);
	struct node_answer answer;
	struct node_answer other;
	ssize_t len = node_answer_read(&answer, text, size);

	fuzz_holds(len >= -1 && len <= (ssize_t)size, "so many bytes");
	if (len <= 0)
		return;
	fuzz_holds(memcmp(text + len - 4, "\r\n\r\n", 4) == 0, "an end");
	fuzz_holds(answer.status >= 100 && answer.status <= 599, "a status");
	fuzz_holds(answer.length >= -1 && answer.length <= NODE_LENGTH_MAX,
	    "a length");
	fuzz_holds(utf8_valid(answer.name, strlen(answer.name)), "a name");
	buf_adds(&again, "HTTP/1.1 200 OK\r\n");
	node_answer_add(&again, answer.name, answer.note);
	buf_adds(&again, "\r\n");
	fuzz_holds(node_answer_read(&other, buf_str(&again), again.len) ==
		    (ssize_t)again.len &&
		strcmp(other.name, answer.name) == 0 &&
		strcmp(other.note, answer.note) == 0,
	    "what is written is read");
}

static void
check_table(const char *text, size_t size)
{
	struct node_table *table = NULL;
	const struct node_entry *node = NULL;
	struct err err;
	auto_buf struct buf again = BUF_INIT(4 * NODES_FILE_MAX);
	struct node_table *other = NULL;
	size_t count = 0;

	if (node_table_parse(&table, text, size, "a", &err) != 0)
		return;
	fuzz_holds(strcmp(node_table_own(table)->name, "a") == 0, "ourselves");
	while ((node = node_table_next(table, node)) != NULL) {
		count++;
		fuzz_holds(node_table_tagged(table, node->tag) == node &&
			node_table_named(table, node->name) == node,
		    "a name and a tag of its own");
		fuzz_holds(strpbrk(node->address, " \t\r\n;{}$\"'\\/") == NULL,
		    "an address that nginx takes");
	}
	fuzz_holds(count > 0 && count <= NODES_MAX, "so many");
	for (int slot = 0; slot < SLOTS; slot++)
		fuzz_holds(node_table_owner(table, slot) != NULL, "an owner");
	node_table_print(table, &again);
	fuzz_holds(node_table_parse(&other, buf_str(&again), again.len, "a",
		       &err) == 0,
	    "what is printed is read");
	for (int slot = 0; slot < SLOTS; slot++)
		fuzz_holds(strcmp(node_table_owner(table, slot)->name,
			       node_table_owner(other, slot)->name) == 0,
		    "the same owner");
	node_table_free(other);
	node_table_free(table);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	check_answer(text, size);
	check_table(text, size);
	free(text);
	return 0;
}
