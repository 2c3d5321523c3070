/* SPDX-License-Identifier: MIT */
#include "protocol/handover.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "protocol/condition.h"
#include "protocol/counters.h"

#define AT_ONCE 128
#define BYTES_MAX 4096
#define MODE 0660 /* il-fcgi writes as another user of the same group */

/*
 * All workers wait for the FIFO, and the kernel wakes one of those that wait
 * (EPOLLEXCLUSIVE): with all of them awake for each job, three would query the
 * database for nothing, and lock it for the one that has the job.  A worker
 * that wakes takes one byte, wakes another worker when there were more, and
 * then claims until the queue is empty.  Bytes and awake workers together are
 * never fewer than queued jobs, except when a worker dies between its byte and
 * its claim; for that workers also query the queue every few seconds.
 */

/* ERR_CONFIG: something else bears its name. */
static int
fifo_open(const char *path, int flags, struct err *err)
{
	auto_close int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_system(err, "open %s", path);
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return steal_fd(&fd);
	return err_set(err, ERR_CONFIG, "%s is not a FIFO", path);
}

/* True: the bytes are written, or nobody needs more of them. */
static bool
write_bytes(int fd, size_t count)
{
	static const char bytes[AT_ONCE];

	while (count > 0) {
		size_t some = count < AT_ONCE ? count : AT_ONCE;
		ssize_t n = write(fd, bytes, some);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		count -= (size_t)n;
	}
	return true;
}

/* A second try: the workers of the first may have been replaced.  Without any
 * worker the FIFO cannot be opened. */
void
wake_workers(struct wake *wake, size_t count)
{
	struct err err;

	for (int tries = 0; count > 0 && tries < 2; tries++) {
		if (wake->fd < 0)
			wake->fd = fifo_open(wake->path, O_WRONLY, &err);
		if (wake->fd < 0) {
			if (err.code == ERR_CONFIG)
				log_warn("%s", err.text);
			return;
		}
		if (write_bytes(wake->fd, count))
			return;
		cleanup_close(&wake->fd);
	}
}

int
wake_fifo_open(const char *path, struct err *err)
{
	if (mkfifo(path, MODE) == 0)
		(void)chmod(path, MODE); /* in spite of the umask */
	else if (errno != EEXIST)
		return err_system(err, "make %s", path);
	return fifo_open(path, O_RDWR, err);
}

int
wake_wait_open(int fd, int stop_fd, struct err *err)
{
	auto_close int wait_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event wake = { .events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.fd = fd };
	struct epoll_event stop = { .events = EPOLLIN, .data.fd = stop_fd };

	if (wait_fd < 0)
		return err_system(err, "epoll_create1");
	if (epoll_ctl(wait_fd, EPOLL_CTL_ADD, fd, &wake) != 0 ||
	    epoll_ctl(wait_fd, EPOLL_CTL_ADD, stop_fd, &stop) != 0)
		return err_system(err, "epoll_ctl");
	return steal_fd(&wait_fd);
}

void
wake_wait(int wait_fd, int fd, int timeout_ms)
{
	struct epoll_event events[2];
	int count = epoll_wait(wait_fd, events, 2, timeout_ms);
	char bytes[BYTES_MAX];
	ssize_t n;

	for (int i = 0; i < count; i++) {
		if (events[i].data.fd != fd)
			continue;
		/* All but one are written back, for another worker: a byte
		 * wakes for certain only when the FIFO was empty. */
		n = TEMP_FAILURE_RETRY(read(fd, bytes, sizeof(bytes)));
		if (n > 1 && write(fd, bytes, (size_t)n - 1) < 0)
			return; /* it is full: they wake anyway */
	}
}

void
wake_others(int fd, int count)
{
	while (count-- > 0 && write(fd, "", 1) == 1)
		;
}

/* ---- cancelled jobs ---- */

#define CANCELS "cancels"
#define CANCELS_MODE 0770

/* Heap. */
static char *
cancel_path(const struct config *config, int64_t job_id)
{
	auto_free char *folder = config_state_path(config, CANCELS);

	return xprintf("%s/%" PRId64, folder, job_id);
}

/* O_EXCL opens nothing that exists, a FIFO for instance. */
int
cancel_ask(const struct config *config, int64_t job_id, struct err *err)
{
	auto_free char *path = cancel_path(config, job_id);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0640);

	return fd < 0 && errno != EEXIST ? err_system(err, "%s", path) : 0;
}

int
cancel_watch(const struct config *config, struct err *err)
{
	auto_free char *folder = config_state_path(config, CANCELS);
	auto_close int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd_make_dirs(folder, CANCELS_MODE, err) < 0)
		return -1;
	if (fd < 0 || inotify_add_watch(fd, folder, IN_CREATE | IN_ONLYDIR) < 0)
		return err_system(err, "watch %s", folder);
	return steal_fd(&fd);
}

/* The events do not matter: there may have been more than fit. */
void
cancel_heard(int watch_fd)
{
	char events[4096];

	while (read(watch_fd, events, sizeof(events)) > 0)
		;
}

bool
cancel_is_asked(const struct config *config, int64_t job_id)
{
	auto_free char *path = cancel_path(config, job_id);

	return access(path, F_OK) == 0;
}

void
cancel_forget(const struct config *config, int64_t job_id)
{
	auto_free char *path = cancel_path(config, job_id);

	(void)unlink(path);
}

void
cancel_sweep(const struct config *config)
{
	auto_free char *folder = config_state_path(config, CANCELS);
	time_t before = time(NULL) - CANCEL_KEEP_SECONDS;
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	struct stat st;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (fstatat(dirfd(dir), entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISDIR(st.st_mode) && st.st_mtime < before)
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
}

/* ---- first responses ---- */

#define ANSWERS "answers"
#define ANSWERS_MODE 0750
#define SOCKET_MODE 0660
#define REPLY_SENT 'S'
#define REPLY_LATE 'L'
#define REPLY_UNKNOWN 'U'

char *
first_response_path(const struct config *config, int64_t index)
{
	auto_free char *folder = config_state_path(config, ANSWERS);

	return xprintf("%s/%" PRId64, folder, index);
}

int
first_response_give(const char *path, int64_t job_id, const char *json,
    int timeout_ms, struct err *err)
{
	auto_buf struct buf packet = BUF_INIT(FIRST_RESPONSE_SIZE);
	auto_close int fd = fd_connect_unix(path, SOCK_SEQPACKET, err);

	if (fd < 0)
		return -1;
	buf_add(&packet, &job_id, sizeof(job_id));
	buf_adds(&packet, json);
	if (packet.overflow)
		return err_set(err, ERR_LIMIT, "the response is too long");
	if (fd_send_packet(fd, packet.data, packet.len, -1, timeout_ms, err) !=
	    0)
		return -1;
	return steal_fd(&fd);
}

/* Only the first byte of the reply counts; without one nobody is there. */
enum first_response
first_response_outcome(int fd, int timeout_ms, struct err *err)
{
	char reply = 0;

	if (fd_receive_packet(fd, &reply, 1, NULL, timeout_ms, err) < 0)
		return FIRST_RESPONSE_NOBODY;
	if (reply == REPLY_SENT)
		return FIRST_RESPONSE_SENT;
	if (reply == REPLY_LATE)
		return FIRST_RESPONSE_LATE;
	(void)err_set(err, ERR_PROTOCOL,
	    reply == REPLY_UNKNOWN ? "the front does not hold it" :
				     "no word on the response");
	return FIRST_RESPONSE_NOBODY;
}

int
first_response_listen(const struct config *config, size_t index,
    struct err *err)
{
	auto_free char *folder = config_state_path(config, ANSWERS);
	auto_free char *path = first_response_path(config, (int64_t)index);

	if (fd_make_dirs(folder, ANSWERS_MODE, err) < 0)
		return -1;
	return fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK, SOCKET_MODE,
	    err);
}

const char *
first_response_receive(int fd, char *data, int64_t *job_id)
{
	struct err err;
	ssize_t n = fd_receive_packet(fd, data, FIRST_RESPONSE_SIZE - 1, NULL,
	    0, &err);

	if (n < (ssize_t)sizeof(*job_id))
		return NULL;
	memcpy(job_id, data, sizeof(*job_id));
	data[n] = '\0';
	return data + sizeof(*job_id);
}

/* A worker that does not wait for it any more has not taken it for sent. */
void
first_response_reply(int fd, enum first_response what)
{
	static const char replies[] = {
		[FIRST_RESPONSE_SENT] = REPLY_SENT,
		[FIRST_RESPONSE_LATE] = REPLY_LATE,
		[FIRST_RESPONSE_NOBODY] = REPLY_UNKNOWN,
	};
	const char reply = replies[what];
	struct err err;

	(void)fd_send_packet(fd, &reply, 1, -1, 0, &err);
}

/* ---- condition ---- */

#define FOLDER "front"
#define TOLD FOLDER "/jobs"
#define TOLD_MAX 8192

void
condition_look(struct condition_facts *facts, const struct config *config)
{
	auto_buf struct buf still = BUF_INIT(sizeof(facts->still) - 1);

	*facts = (struct condition_facts){
		.front = true,
		.api = true,
		.database = true,
		.broker = true,
		.quota = config->quota,
	};
	pulse_look(config, &facts->workers, &still);
	(void)snprintf(facts->still, sizeof(facts->still), "%s",
	    still.overflow ? "" : buf_str(&still));
}

/* ---- the verdict ---- */

static void __attribute__((format(printf, 4, 5)))
condition_set(struct condition_verdict *v, enum condition what,
    const char *mend, const char *fmt, ...)
{
	va_list ap;

	v->what = what;
	(void)snprintf(v->mend, sizeof(v->mend), "%s", mend);
	va_start(ap, fmt);
	(void)vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
	text_clean_array(v->text, sizeof(v->text));
}

#define RESTART_ENGINE \
	"systemctl restart docker (an engine of its own in a container: " \
	"restart that container)"

static void
judge_starts(const struct condition_facts *facts, struct condition_verdict *v)
{
	static const char mend[] = RESTART_ENGINE
	    ", and look at il-sandboxd's log";
	const struct lease_status *s = &facts->status;

	if (s->start_pending_ms > CONDITION_START_MS)
		condition_set(v, CONDITION_STARTS, mend,
		    "the Docker engine answers, and has been starting a "
		    "container for %" PRId64 " s",
		    s->start_pending_ms / 1000);
	else if (s->start_failures > 0)
		condition_set(v, CONDITION_STARTS, mend,
		    "the Docker engine answers, and starts no container "
		    "(%" PRId64 " in a row have failed): %s",
		    s->start_failures, s->trouble);
}

/* The broker's knowledge has an age.  A broker that has just begun asks the
 * engine within seconds, and nothing is wrong until then. */
static void
judge_engine(const struct condition_facts *facts, struct condition_verdict *v)
{
	const struct lease_status *s = &facts->status;
	int64_t age_s = s->engine_age_ms / 1000;

	if (!facts->broker)
		condition_set(v, CONDITION_BROKER, CONDITION_START_ALL,
		    "il-sandboxd does not answer");
	else if (s->engine_age_ms < 0)
		judge_starts(facts, v);
	else if (!s->engine)
		condition_set(v, CONDITION_ENGINE, RESTART_ENGINE,
		    "the Docker engine does not answer (asked %" PRId64
		    " s ago)",
		    age_s);
	else if (!s->image)
		condition_set(v, CONDITION_IMAGE,
		    "ilctl doctor names it, and how it is had",
		    "the sandbox image is missing (looked for %" PRId64
		    " s ago)",
		    age_s);
	else
		judge_starts(facts, v);
}

/* Both `ilctl run` and systemd start a worker again that was killed. */
static void
judge_workers(const struct condition_facts *facts, struct condition_verdict *v)
{
	char mend[sizeof(facts->still) + sizeof("kill -KILL")];

	if (facts->workers.alive == 0) {
		condition_set(v, CONDITION_WORKERS, CONDITION_START_ALL,
		    "no worker runs");
	} else if (facts->workers.moving == 0) {
		(void)snprintf(mend, sizeof(mend), "kill -KILL%s",
		    facts->still);
		condition_set(v, CONDITION_STILL,
		    *facts->still != '\0' ? mend : "ilctl doctor",
		    "none of the %d workers moves: they are stopped, or hang",
		    facts->workers.alive);
	} else if (facts->oldest_ms >= CONDITION_QUEUE_MS) {
		condition_set(v, CONDITION_QUEUE, "ilctl top",
		    "the oldest command waits for %" PRId64 " s",
		    facts->oldest_ms / 1000);
	}
}

void
condition_judge(const struct condition_facts *facts,
    struct condition_verdict *v)
{
	*v = (struct condition_verdict){ .what = CONDITION_WELL };
	if (!facts->front)
		condition_set(v, CONDITION_FRONT, CONDITION_START_ALL,
		    "il-fcgi does not answer");
	else if (!facts->api)
		condition_set(v, CONDITION_API, CONDITION_START_ALL,
		    "il-api does not answer");
	else if (!facts->database)
		condition_set(v, CONDITION_DATABASE, "ilctl doctor",
		    "the database does not answer");
	if (v->what == CONDITION_WELL)
		judge_engine(facts, v);
	if (v->what == CONDITION_WELL)
		judge_workers(facts, v);
	/* a broker that could not look tells no floor */
	if (v->what == CONDITION_WELL && facts->status.floor > 0 &&
	    lease_status_room(&facts->status) < facts->quota)
		condition_set(v, CONDITION_DISK,
		    "free some space, or ilctl expire",
		    "the disk has %s for more: not enough for one sandbox "
		    "more to be written to",
		    text_size(lease_status_room(&facts->status)).text);
}

/* ---- the report of il-fcgi ---- */

/* The file has a line "key number" for each of these; a number is read up to 18
 * digits. */
#define JOBS_FORMAT(number) \
	"written_ms " number "\ndatabase " number "\nqueued " number \
	"\nrunning " number "\nuntold " number "\noldest_ms " number "\n"

int
condition_tell_jobs(const struct config *config,
    const struct condition_jobs *jobs, struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD);
	auto_free char *folder = config_state_path(config, FOLDER);
	auto_free char *text = xprintf(JOBS_FORMAT("%" PRId64),
	    jobs->written_ms, jobs->database, jobs->queued, jobs->running,
	    jobs->untold, jobs->oldest_ms);

	if (fd_make_dirs(folder, 0750, err) != 0)
		return -1;
	return file_write(path, text, strlen(text), false, err);
}

static bool
parse_jobs(const char *text, struct condition_jobs *jobs)
{
	return sscanf(text, JOBS_FORMAT("%18" SCNd64), &jobs->written_ms,
		   &jobs->database, &jobs->queued, &jobs->running,
		   &jobs->untold, &jobs->oldest_ms) == 6 &&
	    jobs->written_ms >= 0 && jobs->database >= 0 && jobs->queued >= 0 &&
	    jobs->running >= 0 && jobs->untold >= 0 && jobs->oldest_ms >= 0;
}

int64_t
condition_read_jobs(const struct config *config, struct condition_jobs *jobs)
{
	auto_free char *path = config_state_path(config, TOLD);
	auto_buf struct buf text = BUF_INIT(TOLD_MAX);
	struct err err = { 0 };
	int64_t age_ms = -1;

	*jobs = (struct condition_jobs){ 0 };
	if (file_read(path, &text, &err) != 0)
		log_warn("jobs: %s", err.text);
	else if (!parse_jobs(buf_str(&text), jobs))
		log_warn("jobs: %s makes no sense", path);
	else
		age_ms = clock_wall_ms() - jobs->written_ms;
	/* The clock was set back: when it was is not known. */
	if (age_ms < 0) {
		age_ms = -1;
		*jobs = (struct condition_jobs){ 0 };
	}
	/* Old news of the database is none. */
	jobs->database = jobs->database == 1 && age_ms <= CONDITION_OLD_MS;
	return age_ms;
}

/* ---- whether the workers move ---- */

/* One of another version may have other places. */
#define PULSE_FILE "worker/pulse-" INLINE_VERSION

struct pulse {
	struct {
		_Atomic int64_t writer; /* 0: no worker has the slot */
		_Atomic int64_t beat_ms;
		_Atomic int64_t due_ms;
		_Atomic int64_t rests;
	} slots[PULSE_SLOTS];
};

struct pulse *
pulse_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, PULSE_FILE);

	return shared_file_open(path, sizeof(struct pulse), err);
}

void
pulse_beat(struct pulse *pulse, int64_t slot, int64_t within_ms, bool rests)
{
	int64_t now_ms = clock_monotonic_ms();

	if (pulse == NULL || slot < 0 || slot >= PULSE_SLOTS)
		return;
	pulse->slots[slot].beat_ms = now_ms;
	pulse->slots[slot].due_ms = now_ms + within_ms + PULSE_MORE_MS;
	pulse->slots[slot].rests = rests;
	pulse->slots[slot].writer = shared_file_writer();
}

void
pulse_close(struct pulse *pulse, int64_t slot)
{
	if (pulse != NULL && slot >= 0 && slot < PULSE_SLOTS)
		pulse->slots[slot].writer = 0;
	shared_file_close(pulse, sizeof(*pulse));
}

void
pulse_look(const struct config *config, struct pulse_count *count,
    struct buf *still)
{
	auto_free char *path = config_state_path(config, PULSE_FILE);
	struct err err = { 0 };
	const struct pulse *pulse = shared_file_read(path, sizeof(*pulse),
	    &err);

	*count = (struct pulse_count){ .heard_ms = -1 };
	if (pulse == NULL) {
		log_debug("pulse: %s", err.text);
		return;
	}
	for (size_t i = 0; i < PULSE_SLOTS; i++) {
		int64_t writer = pulse->slots[i].writer;
		int64_t beat_ms = pulse->slots[i].beat_ms;
		int64_t due_ms = pulse->slots[i].due_ms;
		int64_t now_ms = clock_monotonic_ms();

		/* a beat that is yet to come is of the last boot */
		if (!shared_file_writer_is_there(writer) || beat_ms > now_ms)
			continue;
		count->alive++;
		if (now_ms > due_ms) {
			if (still != NULL)
				buf_addf(still, " %d",
				    (int)shared_file_writer_pid(writer));
			continue;
		}
		count->moving++;
		if (pulse->slots[i].rests == 0)
			beat_ms = INT64_MAX;
		if (beat_ms > count->heard_ms)
			count->heard_ms = beat_ms;
	}
	shared_file_close(pulse, sizeof(*pulse));
}

/* ---- counters ---- */

static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
    "other processes must see whole numbers");

/* A file of another version may have other places. */
#define VERSION "-" INLINE_VERSION

/* Folders that their programs may write to. */
static const struct {
	const char *path;
	mode_t folder; /* if it is missing */
} files[COUNTERS_PROGRAMS] = {
	[COUNTERS_OF_API] = { "sessions/counters" VERSION, 0700 },
	[COUNTERS_OF_BROKER] = { "broker/counters" VERSION, 0755 },
	[COUNTERS_OF_FRONT] = { "front/counters" VERSION, 0750 },
	[COUNTERS_OF_WORKER] = { "worker/counters" VERSION, 0755 },
};

#define WORD(name, word) [name] = (word),
#define LABEL(set, COUNT, key, words) \
	const char *const set##_words[COUNTERS_##set + 1] = { words };
#define LIST(set, count, key, ...) \
	const char *const set##_words[COUNTERS_##set + 1] = { __VA_ARGS__ };
#include "protocol/counters.def"
#undef WORD

const int64_t histogram_ends_ms[HISTOGRAM_ENDS] = { 1, 2, 5, 10, 20, 50, 100,
	200, 500, 1000, 2000, 5000, 20000, 60000 };

struct counters *
counters_open(const struct config *config, enum counters_of program)
{
	static struct counters unseen;
	auto_free char *path = config_state_path(config, files[program].path);
	auto_free char *copy = xstrdup(path);
	struct counters *counters = NULL;
	struct err err;

	if (fd_make_dirs(dirname(copy), files[program].folder, &err) == 0)
		counters = shared_file_open(path, sizeof(*counters), &err);
	/* A file that is none of ours is begun anew. */
	if (counters == NULL && err.code == ERR_CONFIG && unlink(path) == 0)
		counters = shared_file_open(path, sizeof(*counters), &err);
	if (counters != NULL)
		return counters;
	log_warn("nothing is counted: %s", err.text);
	return &unseen;
}

/* The file is not mapped here: the program that owns it could cut it off. */
int
counters_read(const struct config *config, enum counters_of program,
    struct counters *copy, struct err *err)
{
	auto_free char *path = config_state_path(config, files[program].path);
	auto_buf struct buf bytes = BUF_INIT(sizeof(*copy));

	if (file_read(path, &bytes, err) != 0)
		return -1;
	if (bytes.len != sizeof(*copy))
		return err_set(err, ERR_CONFIG, "%s: of another size", path);
	memcpy(copy, bytes.data, sizeof(*copy));
	return 0;
}

/* The bucket is the first one that is large enough. */
void
histogram_observe(struct histogram *h, int64_t us)
{
	size_t bucket = 0;

	if (us < 0)
		us = 0; /* the clock was set back */
	while (bucket < HISTOGRAM_ENDS && us > histogram_ends_ms[bucket] * 1000)
		bucket++;
	h->buckets[bucket]++;
	h->sum_us += us;
}

size_t
counters_status(const char *const *words, int status)
{
	size_t i = 0;
	char word[16] = "none";

	if (status != 0)
		(void)snprintf(word, sizeof(word), "%d", status);
	while (strcmp(words[i], word) != 0 && words[i + 1] != NULL)
		i++;
	return i;
}
