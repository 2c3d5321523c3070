/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"

int
file_read(const char *path, struct buf *out, struct err *err)
{
	/* a FIFO that nobody writes to must not hold us up */
	auto_close int fd = open(path,
	    O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char piece[4096];
	ssize_t got = fd < 0 ? -1 : 1;

	while (got > 0 && !out->overflow) {
		got = TEMP_FAILURE_RETRY(read(fd, piece, sizeof(piece)));
		if (got > 0)
			buf_add(out, piece, (size_t)got);
	}
	if (got == 0)
		return 0;
	if (out->overflow)
		(void)err_set(err, ERR_CONFIG, "%s is over %zu bytes", path,
		    out->max);
	else
		(void)err_system(err, "%s %s", fd < 0 ? "open" : "read", path);
	err->code = ERR_CONFIG;
	return -1;
}

int
file_write(const char *path, const char *text, size_t len, bool lasting,
    struct err *err)
{
	auto_free char *temporary = xprintf("%s.new", path);
	auto_close int fd = -1;
	struct stat old;

	fd = open(temporary,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_system(err, "%s", temporary);
	if (stat(path, &old) == 0)
		(void)!fchown(fd, (uid_t)-1, old.st_gid);
	if (fd_write_all(fd, text, len, err) == 0 &&
	    (!lasting || fsync(fd) == 0) && rename(temporary, path) == 0)
		return 0;
	(void)err_system(err, "write %s", path);
	(void)unlink(temporary);
	return -1;
}

bool
file_is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
	    one->st_size == other->st_size &&
	    one->st_ctim.tv_sec == other->st_ctim.tv_sec &&
	    one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

/* ---- files of KEY=VALUE lines ---- */

#define BLANKS " \t\r"
#define KEY_CHARS \
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* Cut blanks off both ends, in place. */
static char *
envfile_trim(char *s)
{
	size_t len;

	s += strspn(s, BLANKS);
	len = strlen(s);
	while (len > 0 && strchr(BLANKS, s[len - 1]) != NULL)
		len--;
	s[len] = '\0';
	return s;
}

/* Take the quotes off; NULL when the closing one is missing or not last. */
static char *
envfile_unquote(char *value)
{
	char quote = *value;
	char *end;

	if (quote != '"' && quote != '\'')
		return value;
	end = strchr(value + 1, quote);
	if (end == NULL || end[1] != '\0')
		return NULL;
	*end = '\0';
	return value + 1;
}

/* The reason is without the line's text: it may be a secret. */
static int
envfile_line(char *line, envfile_fn fn, void *arg, struct err *err)
{
	char *key = envfile_trim(line);
	char *value;

	if (*key == '\0' || *key == '#')
		return 0;
	value = strchr(key, '=');
	if (value == NULL)
		return err_set(err, ERR_CONFIG, "no '=' in it");
	*value = '\0';
	value = envfile_unquote(envfile_trim(value + 1));
	key = envfile_trim(key);
	/* A name as a shell takes it. */
	if (*key == '\0' || (*key >= '0' && *key <= '9') ||
	    key[strspn(key, KEY_CHARS)] != '\0')
		return err_set(err, ERR_CONFIG,
		    "what stands before '=' is not a key");
	if (value == NULL)
		return err_set(err, ERR_CONFIG, "%s: unbalanced quotes", key);
	return fn(arg, key, value, err);
}

int
envfile_parse(struct buf *text, const char *name, envfile_fn fn, void *arg,
    struct err *err)
{
	char *rest = text->data;
	char *line;

	if (strlen(buf_str(text)) != text->len)
		return err_set(err, ERR_CONFIG, "%s: a NUL byte", name);
	for (int number = 1; (line = strsep(&rest, "\n")) != NULL; number++)
		if (envfile_line(line, fn, arg, err) != 0)
			return err_wrap(err, "%s line %d", name, number);
	return 0;
}

/* ---- files that processes share ---- */

/* A writer is a process's number and, in the bits above it, its start: Linux
 * gives numbers below 2^22. */
#define PID_BITS 22
#define PID_MOST ((INT64_C(1) << PID_BITS) - 1)
#define START_MOST ((INT64_C(1) << (63 - PID_BITS)) - 1)
/* The start's place among the fields of /proc/PID/stat after the name. */
#define START_AFTER_NAME 20

/* Ours, of its size?  A new file gets it; whoever is second does the same. */
static int
check_file(int fd, const char *path, size_t size, bool make, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_system(err, "%s", path);
	if (!S_ISREG(st.st_mode) || (make && st.st_uid != geteuid()))
		return err_set(err, ERR_CONFIG, "%s: not a file of ours", path);
	if (st.st_size != (off_t)size && !(make && st.st_size == 0))
		return err_set(err, ERR_CONFIG, "%s: of another size", path);
	/* Every user who may enter the folder may read the file. */
	if (make && fchmod(fd, 0644) != 0)
		return err_system(err, "%s", path);
	/* with its room: a write into a hole of a full disk would kill us */
	if (make && (errno = posix_fallocate(fd, 0, (off_t)size)) != 0)
		return err_system(err, "%s", path);
	return 0;
}

static void *
map(const char *path, size_t size, int how, int fd, struct err *err)
{
	void *shared = mmap(NULL, size, how,
	    MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (shared != MAP_FAILED)
		return shared;
	(void)err_system(err, "map %s", path != NULL ? path : "memory");
	return NULL;
}

/* Without O_NONBLOCK a FIFO in its place would wait. */
#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

void *
shared_file_open(const char *path, size_t size, struct err *err)
{
	auto_close int fd = -1;

	if (path != NULL) {
		fd = open(path, O_RDWR | O_CREAT | OPEN_FLAGS, 0600);
		if (fd < 0) {
			(void)err_system(err, "%s", path);
			return NULL;
		}
		if (check_file(fd, path, size, true, err) != 0)
			return NULL;
	}
	return map(path, size, PROT_READ | PROT_WRITE, fd, err);
}

const void *
shared_file_read(const char *path, size_t size, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | OPEN_FLAGS);

	if (fd < 0) {
		(void)err_system(err, "%s", path);
		return NULL;
	}
	if (check_file(fd, path, size, false, err) != 0)
		return NULL;
	return map(path, size, PROT_READ, fd, err);
}

/* The start of a process in ticks since the boot (field 22); 0: there is no
 * such process, or /proc hides it. */
static int64_t
read_start(pid_t pid)
{
	char path[64];
	char text[1024];
	char *at;
	auto_close int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* its name may hold blanks */
	for (int i = 0; i < START_AFTER_NAME && at != NULL; i++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoll(at, NULL, 10) & START_MOST : 0;
}

int64_t
shared_file_writer(void)
{
	static _Atomic int64_t own; /* of a parent after a fork */

	if (shared_file_writer_pid(own) != getpid())
		own = read_start(getpid()) << PID_BITS | getpid();
	return own;
}

pid_t
shared_file_writer_pid(int64_t writer)
{
	return (pid_t)(writer & PID_MOST);
}

bool
shared_file_writer_is_there(int64_t writer)
{
	pid_t pid = shared_file_writer_pid(writer);
	int64_t noted = writer >> PID_BITS;
	int64_t start;

	if (writer <= 0 || pid == 0 || (kill(pid, 0) != 0 && errno != EPERM))
		return false;
	start = read_start(pid);
	return start == noted || start == 0 || noted == 0;
}

void
shared_file_close(const void *shared, size_t size)
{
	if (shared != NULL)
		(void)munmap((void *)(uintptr_t)shared, size);
}
