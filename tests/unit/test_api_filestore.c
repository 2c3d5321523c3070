/* SPDX-License-Identifier: MIT */
/* The file store: ids, what is there and what is not, bounds, sweeping. */
#include "files/filestore.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "base/basics.h"
#include "base/text.h"
#include "contract/code_interpreter/execute_message.h"
#include "tap.h"

static const struct filestore_limits limits = { .ttl_ms = 3600000,
	.quota = 1000,
	.count_max = 5 };

static struct filestore store;
static struct err err;
static char folder[256];
static char other_folder[256];

/* The id of a new file; "" when it did not work. */
static const char *
put(const char *name, const char *content)
{
	static char id[FILESTORE_ID_LEN + 1];
	struct filestore_new file;

	id[0] = '\0';
	if (filestore_begin(&store, &file, &err) < 0)
		return id;
	if (filestore_write(&file, content, strlen(content), &err) < 0) {
		filestore_abort(&file);
		return id;
	}
	(void)snprintf(id, sizeof(id), "%s", file.id);
	if (filestore_commit(&file, name, &err) < 0)
		id[0] = '\0';
	return id;
}

/* "<name> <content>", or the error's name. */
static const char *
get(const char *id)
{
	static char text[FILESTORE_NAME_MAX + 2048];
	struct filestore_entry entry;
	char content[1024];
	ssize_t n;
	int fd;

	err.code = ERR_NONE;
	fd = filestore_get(&store, id, strlen(id), &entry, &err);
	if (fd < 0)
		return err.code == ERR_NOT_FOUND ? "not-found" : "an error";
	n = read(fd, content, sizeof(content));
	(void)snprintf(text, sizeof(text), "%s %.*s", entry.name,
	    n > 0 ? (int)n : 0, content);
	if (entry.size != n)
		(void)snprintf(text, sizeof(text), "another size");
	free(entry.name);
	(void)close(fd);
	return text;
}

static size_t
count_in_folder(void)
{
	struct filestore_entry entry;
	struct err ignored;
	DIR *dir = filestore_open_folder(&store, &ignored);
	size_t count = 0;

	if (dir == NULL)
		return 999;
	while (filestore_next(&store, dir, &entry)) {
		count++;
		free(entry.name);
	}
	(void)closedir(dir);
	return count;
}

/* The use that is accounted for, in bytes or files. */
static int64_t
used(bool of_bytes)
{
	return of_bytes ? store.usage->bytes : store.usage->files;
}

/* Make it look as if it had been used so long ago. */
static void
age(const char *name, int64_t ms)
{
	int64_t at = clock_wall_ms() - ms;
	struct timespec times[2] = {
		{ .tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 },
		{ .tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 },
	};

	if (utimensat(store.dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		note("%s: %s", name, strerror(errno));
}

static bool
there(const char *name)
{
	return faccessat(store.dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
test_ids(void)
{
	static const char *const bad[] = { "", "..", "/etc/passwd", "../x",
		"00000000-0000-1000-8000-000000000000",
		"00000000-0000-4000-c000-000000000000",
		"0000000000000-4000-8000-000000000000",
		"00000000-0000-4000-8000-00000000000",
		"00000000-0000-4000-8000-0000000000000",
		"0000000A-0000-4000-8000-000000000000",
		"00000000-0000-4000-8000-00000000000/",
		"00000000-0000-4000-8000-000000000000.meta" };

	ok(text_is_uuid("0123456f-abcd-4ef0-a123-0123456789ab", 36), "one");
	ok(!text_is_uuid("0123456f-abcd-4ef0-a123-0123456789ab\0x", 38),
	    "with a NUL");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ok(!text_is_uuid(bad[i], strlen(bad[i])), bad[i]);
		is_str(get(bad[i]), "not-found", "so it is not found");
		ok(filestore_delete(&store, bad[i], strlen(bad[i]), &err) < 0,
		    "nor removed");
	}
}

static void
test_life(void)
{
	char first[64];
	char second[64];
	char name[] = "é\"";
	struct filestore_entry entry = { .id = "ID",
		.name = name,
		.size = 3,
		.uploaded_ms = 1700000000250 };
	struct buf json = BUF_INIT(10000);

	(void)snprintf(first, sizeof(first), "%s", put("../é\r\n\"", "one"));
	(void)snprintf(second, sizeof(second), "%s", put("", ""));
	ok(text_is_uuid(first, strlen(first)), "made an id");
	ok(strcmp(first, second) != 0, "another one");
	is_str(get(first), "../é\r\n\" one", "comes back");
	is_str(get(second), " ", "an empty one too");
	is_str(get("0123456f-abcd-4ef0-a123-0123456789ab"), "not-found",
	    "an id that is not there");
	is_int(count_in_folder(), 2, "both are listed");
	execute_add_file(&json, entry.id, entry.name, entry.size,
	    entry.uploaded_ms);
	is_str(buf_str(&json),
	    "{\"file_id\":\"ID\",\"filename\":\"é\\\"\","
	    "\"size_bytes\":3,\"upload_time\":1700000000.250}",
	    "as JSON");
	buf_reset(&json);
	execute_add_file(&json, "ID", "a", 1, -1);
	is_str(buf_str(&json),
	    "{\"file_id\":\"ID\",\"filename\":\"a\",\"size_bytes\":1}",
	    "so is a new one");
	buf_release(&json);
	ok(filestore_delete(&store, first, strlen(first), &err) == 0, "gone");
	ok(filestore_delete(&store, first, strlen(first), &err) < 0 &&
		err.code == ERR_NOT_FOUND,
	    "once only");
	is_str(get(first), "not-found", "is not there");
	(void)snprintf(first + FILESTORE_ID_LEN,
	    sizeof(first) - FILESTORE_ID_LEN, ".meta");
	ok(!there(first), "nor its metadata");
	ok(filestore_delete(&store, second, strlen(second), &err) == 0,
	    "the other too");
}

static void
test_new(void)
{
	struct filestore_new file;
	char name[64];

	ok(filestore_begin(&store, &file, &err) == 0, "a new one");
	is_str(get(file.id), "not-found", "is not there yet");
	is_int(count_in_folder(), 0, "nor listed");
	ok(filestore_write(&file, "x", 1, &err) == 0 &&
		filestore_commit(&file, "n", &err) == 0,
	    "it is written");
	is_str(get(file.id), "n x", "has what came");
	filestore_abort(&file);
	is_str(get(file.id), "n x", "abort after commit does nothing");
	(void)filestore_delete(&store, file.id, FILESTORE_ID_LEN, &err);
	ok(filestore_begin(&store, &file, &err) == 0, "one more");
	(void)snprintf(name, sizeof(name), "new-%s", file.id);
	ok(there(name), "lies under another name");
	filestore_abort(&file);
	ok(!there(name), "aborted");
}

static void
test_bounds(void)
{
	struct filestore_new file;
	char big[901];
	char ids[5][64];
	char *long_name = xcalloc(FILESTORE_NAME_MAX + 100, 1);

	memset(big, 'x', 900);
	big[900] = '\0';
	(void)snprintf(ids[0], sizeof(ids[0]), "%s", put("big", big));
	ok(ids[0][0] != '\0', "fits");
	ok(filestore_begin(&store, &file, &err) == 0 &&
		filestore_write(&file, big, 900, &err) == 0 &&
		filestore_commit(&file, "n", &err) < 0 && err.code == ERR_LIMIT,
	    "past the quota");
	ok(put("small", "x")[0] != '\0', "a small one still fits");
	is_int(used(true), 901, "all bytes are counted");
	is_int(used(false), 2, "and files");
	(void)filestore_sweep(&store);
	is_int(used(true), 901, "the same when counted again");
	is_int(used(false), 2, "and files");
	ok(put("small", "x")[0] != '\0', "and then one fits");
	(void)filestore_delete(&store, ids[0], strlen(ids[0]), &err);
	memset(long_name, 'n', FILESTORE_NAME_MAX + 99);
	(void)snprintf(ids[1], sizeof(ids[1]), "%s", put(long_name, ""));
	store.limits.quota = 100000;
	is_int(strlen(get(ids[1])), FILESTORE_NAME_MAX + 1, "a long name");
	free(long_name);
	(void)put("4", "");
	(void)put("5", "");
	is_str(put("6", ""), "", "too many files");
	is_int(err.code, ERR_LIMIT, "is a limit");
	store.limits.count_max = 100;
}

/* A pipe stands for the supervisor: its other end may be closed. */
static int kept[2] = { -1, -1 };
static int64_t kept_bytes;
static int kept_times;
static bool keeps;

static int
keep_space(void *arg, int64_t bytes, struct err *why)
{
	int *times = arg;

	if (!keeps)
		return err_set(why, ERR_LIMIT, "no room");
	(void)close(kept[1]);
	if (pipe(kept) != 0)
		return -1;
	kept_bytes += bytes;
	(*times)++;
	return kept[0];
}

static void
test_space(void)
{
	struct filestore_new file;
	static char bytes[1 << 20];

	store.limits.quota = 100 << 20;
	store.keep_space = keep_space;
	store.keep_arg = &kept_times;
	is_str(put("a", "x"), "", "no room on the disk");
	is_int(err.code, ERR_LIMIT, "is a limit too");
	keeps = true;
	(void)filestore_begin(&store, &file, &err);
	for (int i = 0; i < 20; i++)
		is_int(filestore_write(&file, bytes, sizeof(bytes), &err), 0,
		    "1 MiB");
	is_int(kept_times, 3, "space is kept ahead, a step at a time");
	ok(kept_bytes >= 20 << 20, "for all that is written");
	(void)close(kept[1]);
	kept[1] = -1;
	keeps = false;
	is_int(filestore_write(&file, bytes, sizeof(bytes), &err), -1,
	    "when the supervisor is gone nothing is written");
	filestore_abort(&file);
	store.keep_space = NULL;
	store.limits.quota = 100000;
}

/* Another process that has a file under way: a byte tells it to go on. */
static void
test_count(void)
{
	struct filestore_new file;
	int go[2];
	int there[2];
	char byte = 'x';
	int64_t before = used(true);
	pid_t other;

	if (pipe(go) != 0 || pipe(there) != 0)
		exit(1);
	other = fork();
	if (other == 0) {
		(void)filestore_begin(&store, &file, &err);
		(void)filestore_write(&file, "12345", 5, &err);
		(void)!write(there[1], &byte, 1);
		(void)!read(go[0], &byte, 1);
		filestore_abort(&file);
		_exit(0);
	}
	(void)!read(there[0], &byte, 1);
	store.usage->bytes += 1000;
	(void)filestore_sweep(&store);
	is_int(used(true), before + 1000,
	    "what changes meanwhile is not counted anew");
	(void)!write(go[1], &byte, 1);
	(void)waitpid(other, NULL, 0);
	(void)filestore_sweep(&store);
	is_int(used(true), before, "what stands still is");
}

/* The number of files of four bytes that fit in, at most 20. */
static int
fill(const char *content)
{
	int count = 0;

	while (count < 20 && put("f", content)[0] != '\0')
		count++;
	return count;
}

/* Names that are made up, of agents say, give nobody more. */
static void
test_senders(void)
{
	static const unsigned char alice[FILESTORE_OWNER_LEN] = "alice";
	static const unsigned char bob[FILESTORE_OWNER_LEN] = "bob";
	unsigned char made_up[FILESTORE_OWNER_LEN] = "agent";
	struct filestore_usage *usage = store.usage;
	char id[64] = "";
	int count = 0;

	store.sender = alice;
	store.owner = made_up;
	for (unsigned char i = 0; i < 40; i++) {
		made_up[0] = i;
		count += fill("0123");
		if (id[0] == '\0')
			(void)snprintf(id, sizeof(id), "%s", put("x", ""));
	}
	is_int(count, 5, "a quarter of all, of however many owners");
	is_int((int64_t)usage->owner_count, 1, "and one row");
	is_int((int64_t)count_in_folder(), 0, "the last owner has none of it");
	made_up[0] = 0;
	is_int((int64_t)count_in_folder(), 6, "the first one has");
	store.sender = bob;
	ok(filestore_delete(&store, id, strlen(id), &err) == 0,
	    "whoever may use a file may delete it");
	is_int(fill("0123"), 5, "another sender has as much");
	is_int(usage->owners[0].files, 5, "the first one has its own still");
	store.sender = NULL;
	store.limits.ttl_ms = 0;
	(void)filestore_sweep(&store);
	store.limits.ttl_ms = 3600000;
	/* All rows are taken. */
	for (size_t i = 0; i < FILESTORE_OWNERS; i++) {
		memset(usage->owners[i].tag, 'x', FILESTORE_TAG_LEN);
		usage->owners[i].files = i != 4711;
	}
	usage->owner_count = FILESTORE_OWNERS;
	store.owner = alice;
	is_int(fill("0123"), 5, "who has nothing any more gives way");
	is_int((int64_t)usage->owner_count, FILESTORE_OWNERS, "in its row");
	is_int(usage->owners[4711].files, 5, "which counts");
	store.limits.ttl_ms = 0;
	(void)filestore_sweep(&store);
	store.limits.ttl_ms = 3600000;
}

/* All processes count an owner's files together, and read them from the disk
 * once. */
static void
test_share(void)
{
	static const unsigned char alice[FILESTORE_OWNER_LEN] = "alice";
	static const unsigned char bob[FILESTORE_OWNER_LEN] = "bob";
	struct filestore_new file;
	char id[64];
	pid_t child;
	int status;

	store.limits.quota = 80;
	store.limits.count_max = 40;
	store.owner = alice;
	(void)snprintf(id, sizeof(id), "%s", put("a", "0123456789"));
	is_int(fill("0123"), 2, "bytes: a quarter of all");
	is_int(err.code, ERR_QUOTA, "and that is said");
	store.owner = bob;
	is_int(fill("0123"), 5, "another owner has as many");
	store.owner = alice;
	ok(filestore_delete(&store, id, strlen(id), &err) == 0, "one goes");
	child = fork();
	if (child == 0)
		_exit(fill("01234"));
	(void)waitpid(child, &status, 0);
	is_int(WEXITSTATUS(status), 2, "another process takes the room");
	is_int(fill("012"), 0, "which is seen here");
	store.owner = bob;
	is_int(fill(""), 5, "files: a quarter, too");
	/* The folder is not looked at: what comes into it by itself is not
	 * seen until the next sweep. */
	is_int(filestore_begin(&store, &file, &err), -1, "no more");
	is_int(err.code, ERR_QUOTA, "of these");
	store.usage->owners[0].files += 7;
	(void)filestore_sweep(&store);
	is_int(store.usage->owners[0].files, 4, "a sweep counts them anew");
	store.limits.ttl_ms = 0;
	(void)filestore_sweep(&store);
	is_int((int64_t)store.usage->owner_count, 0,
	    "who has nothing is forgotten");
	store.limits.ttl_ms = 3600000;
	is_int(fill("0123"), 5, "and begins anew");
	store.limits.ttl_ms = 0;
	(void)filestore_sweep(&store);
	store.limits.ttl_ms = 3600000;
	test_senders();
	store.owner = NULL;
	store.limits.quota = 100000;
	store.limits.count_max = 5;
}

static void
test_sweep(void)
{
	char id[64];
	char name[80];
	struct filestore_new file;
	int64_t next;

	store.limits.ttl_ms = 0;
	is_int(filestore_sweep(&store), -1, "all are gone");
	is_int(count_in_folder(), 0, "indeed");
	is_int(used(true), 0, "nothing is used");
	is_int(used(false), 0, "by nobody");
	store.limits.ttl_ms = 3600000;
	(void)snprintf(id, sizeof(id), "%s", put("a", "a"));
	next = filestore_sweep(&store);
	ok(next > clock_wall_ms() + 3590000 &&
		next <= clock_wall_ms() + 3600000,
	    "the next is due in an hour");
	age(id, 3599000);
	is_str(get(id), "a a", "nearly expired");
	ok(filestore_sweep(&store) > clock_wall_ms() + 3590000,
	    "but used: another hour");
	age(id, 3600001);
	is_str(get(id), "not-found", "expired, not yet swept");
	is_int(count_in_folder(), 0, "not listed");
	(void)filestore_sweep(&store);
	ok(!there(id), "swept");
	ok(filestore_begin(&store, &file, &err) == 0, "one that is written");
	(void)snprintf(name, sizeof(name), "new-%s", file.id);
	age(name, 7200000);
	(void)filestore_sweep(&store);
	ok(there(name), "stays while its writer lives");
	(void)close(file.fd); /* as its end would, and these two */
	buf_release(&file.piece);
	filestore_leave(&store);
	(void)filestore_sweep(&store);
	ok(!there(name), "and goes when it died");
	(void)filestore_sweep(&store);
	is_int(used(false), 0, "with what was accounted for");
	ok(filestore_begin(&store, &file, &err) == 0, "one more");
	for (int i = 0; i < 2; i++) {
		(void)snprintf(name, sizeof(name), "%s%s.meta",
		    i == 0 ? "" : "new-", file.id);
		(void)close(openat(store.dir, name, O_CREAT | O_WRONLY, 0600));
		(void)filestore_sweep(&store);
		ok(there(name), "metadata waits for its file");
	}
	(void)snprintf(name, sizeof(name), "%s.meta", file.id);
	filestore_abort(&file);
	(void)filestore_sweep(&store);
	ok(!there(name), "and goes with it");
	(void)snprintf(name, sizeof(name), "new-%s.meta", file.id);
	ok(!there(name), "unfinished, too");
	(void)close(openat(store.dir, "README", O_CREAT | O_WRONLY, 0600));
	age("README", 7200000);
	(void)filestore_sweep(&store);
	ok(there("README"), "what is not ours stays");
	(void)unlinkat(store.dir, "README", 0);
}

/* An expired file makes room at once. */
static void
test_room(void)
{
	char id[64];

	store.limits.quota = 10;
	(void)snprintf(id, sizeof(id), "%s", put("a", "123456"));
	store.usage->due_ms = 0;
	ok(put("b", "123456")[0] == '\0', "too much for two");
	is_int(used(false), 1, "nothing is left of the second");
	age(id, 3600001);
	store.usage->due_ms = 0;
	is_str(put("b", "123456"), "", "it looks once a second");
	store.usage->room_again_ms = 0;
	store.usage->due_ms = clock_wall_ms() + 100000;
	is_str(put("b", "123456"), "", "and when something may have expired");
	store.usage->due_ms = 0;
	ok(put("b", "123456")[0] != '\0' && !there(id),
	    "the expired one makes room");
	store.limits.ttl_ms = 0;
	(void)filestore_sweep(&store);
	store.limits.ttl_ms = 3600000;
	store.limits.quota = 100000;
}

/* Processes that are forked later count together. */
static void
test_shared(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(put("child", "12345")[0] == '\0');
	ok(waitpid(pid, &status, 0) == pid && status == 0, "a child's file");
	is_int(used(true), 5, "is accounted for here");
}

static void
test_strange(void)
{
	static const char id[] = "0123456f-abcd-4ef0-a123-0123456789ab";

	/* to a file that is new, so that it has not expired */
	(void)close(openat(store.dir, "fresh", O_CREAT | O_WRONLY, 0600));
	ok(symlinkat("fresh", store.dir, id) == 0, "a link");
	is_str(get(id), "not-found", "is not followed");
	is_int(count_in_folder(), 0, "nor listed");
	ok(filestore_delete(&store, id, strlen(id), &err) < 0, "nor removed");
	(void)filestore_sweep(&store);
	(void)unlinkat(store.dir, id, 0);
	(void)unlinkat(store.dir, "fresh", 0);
	ok(mkdirat(store.dir, id, 0700) == 0, "a folder");
	is_str(get(id), "not-found", "is no file");
	ok(filestore_delete(&store, id, strlen(id), &err) < 0, "nor removed");
	(void)unlinkat(store.dir, id, AT_REMOVEDIR);
	ok(mkfifoat(store.dir, id, 0600) == 0, "a pipe");
	is_str(get(id), "not-found", "does not block");
	(void)unlinkat(store.dir, id, 0);
	(void)close(openat(store.dir, id, O_CREAT | O_WRONLY, 0600));
	is_str(get(id), "unnamed ", "metadata may be lost");
	(void)unlinkat(store.dir, id, 0);
}

int
main(void)
{
	(void)snprintf(folder, sizeof(folder), "%s/a/store", tap_folder());
	ok(filestore_open(&store, folder, &limits, &err) == 0, "opens");
	test_ids();
	test_life();
	test_new();
	test_bounds();
	test_space();
	test_count();
	test_sweep();
	test_share();
	test_room();
	test_shared();
	(void)filestore_sweep(&store);
	store.limits.ttl_ms = 0;
	(void)filestore_sweep(&store);
	store.limits.ttl_ms = 3600000;
	test_strange();
	(void)snprintf(other_folder, sizeof(other_folder), "%s/file",
	    tap_folder_path);
	(void)close(open(other_folder, O_CREAT | O_WRONLY, 0600));
	ok(filestore_open(&store, other_folder, &limits, &err) < 0,
	    "a file is no store");
	return tap_done();
}
