/* SPDX-License-Identifier: MIT */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/frame_limits.h"

/*
 * The protocol of client ↔ broker, broker ↔ cell and client ↔ cell.
 *
 * Everything travels over SOCK_SEQPACKET unix sockets: one packet is one frame,
 * 1..FRAME_MAX bytes.  A frame is
 *
 *	u8 kind, then fields: u8 tag, u32 length (little endian), bytes
 *
 * Integers are 8 bytes, signed, little endian.  Fields may come in any order; a
 * tag appears at most once in a frame except where it says "repeated".  Unknown
 * tags are skipped (they come from a newer peer); an unknown kind, a length
 * that runs out of the packet or an integer of another size is a protocol error
 * and ends the connection.  Frames that come from a cell are hostile input.
 *
 * A request to a cell is REQUEST, its pieces (the bytes of each part in their
 * order), GO.  It is answered after GO, also when a piece was refused.  One
 * request at a time.
 *
 * These numbers stand here alone: header.py makes of this file, when building,
 * the constants of the cell's Python (protocol.py) and frame.c's table of kinds
 * and tags.  So each enumerator has its number, and the comment of a tag begins
 * with its type: int, text, bytes, or "bytes, repeated".
 */

/* clang-format off */
enum frame_kind {
	/* client → broker; the answer is FRAME_GRANTED or FRAME_REFUSED */
	FRAME_LEASE = 1,	/* CLASS, SANDBOX?, INTERPRETER?, LEASE_MS,
				 * ACCESS?, KEEP?, FOLDER?, SESSION? (TOKEN,
				 * REST_MS?), IMPORTS?: a cell, please */
	FRAME_CREATE = 2,	/* SANDBOX, QUOTA_BYTES, QUOTA_FILES: make the
				 * workspace; or INTERPRETER: a volume for its
				 * packages.  Exists already: GRANTED */
	FRAME_REMOVE = 3,	/* SANDBOX: end its cells, remove the workspace;
				 * absent already: GRANTED */
	FRAME_STATUS = 4,	/* answered with FRAME_STATUS_IS */
	FRAME_GRANTED = 5,	/* the lease's descriptor rides on it; COLD,
				 * CELL_NAME, ACCESS, ENDED */
	FRAME_REFUSED = 6,	/* CODE (enum refusal), TEXT (log), REST_MS? */
	FRAME_STATUS_IS = 7,	/* see the status tags */
	FRAME_RESERVE = 8,	/* SIZE: for the APIs, until a hang-up */
	FRAME_KEPT = 10,	/* SANDBOX, RETIRE? (ilctl: any idle cell): is
				 * one kept, is it to end?  KEPT, REST_MS */
	FRAME_STAGE = 13,	/* INTERPRETER: a copy of the APIs' packages for
				 * LEASE "install", until the client hangs up */
	FRAME_PUBLISH = 11,	/* INTERPRETER: the copy is what they see now */
	FRAME_PACKAGES = 12,	/* INTERPRETER: what they see: GRANTED, more of
				 * them with TEXT, and the end */
	FRAME_CELLS = 22,	/* GRANTED for each, then one with CELLS */
	FRAME_RESUME = 23,	/* SESSION, TOKEN: its lease; GRANTED */
	FRAME_PARK = 24,	/* in a session's lease, without an answer */
	FRAME_END_SESSION = 25,	/* TOKEN; SESSION, or to evict RETIRE?,
				 * REST_MS?: one that has it */
	FRAME_LOST = 9,		/* last in a lease: REASON_MEMORY ended it */

	/* broker → cell, on the control socket */
	FRAME_SERVE = 16,	/* the lease's end rides on it; ACCESS, KEEP,
				 * FOLDER; for pip INDEX_URL, SDIST, CA */
	FRAME_BESIDE = 19,	/* in a lease of a user cell: a socket for
				 * ACCESS_LOOK rides on it; closed where it
				 * cannot be */
	/* cell → broker, on the control socket */
	FRAME_READY = 17,	/* first frame, after start: PYTHON (version),
				 * ISOLATION (an api cell), TEXT (why no more,
				 * or no /proc), IMPORTS (bit i: the i-th was),
				 * TROUBLE (why one was not); on it rides the
				 * file that counts the memory limit's kills */
	FRAME_IDLE = 18,	/* the lease is over, nothing of it is left, but
				 * an interpreter if KEPT says so; RETIRE */

	/* broker → mounter, and back: PART 0: a cell's pidfd, 1, 2: a device */
	FRAME_ATTACH = 20,	/* PART; OWNER, USER, ACCESS with 0 */
	FRAME_ATTACHED = 21,	/* WHY (enum attach_end), CODE (errno), TEXT */

	/* client → cell, on the lease */
	FRAME_REQUEST = 32,	/* OP and its fields: the head of a request */
	FRAME_BYTES = 33,	/* PART, DATA: a piece of source, stdin, … */
	FRAME_INPUT = 34,	/* PATH: a file; its PART_CONTENT follows; for
				 * an api cell MODE, MTIME, ALWAYS */
	FRAME_GO = 35,		/* the request is complete: begin */
	FRAME_ENOUGH = 36,	/* in a run: end it as if at OUTPUT_MAX */
	FRAME_SIGNAL = 37,	/* in a run: SIGNAL, for its group */

	/* cell → client, on the lease; the last one is FRAME_RESULT, after it
	 * the client may send another FRAME_REQUEST or close */
	FRAME_STARTED = 48,	/* the run has begun */
	FRAME_OUTPUT = 49,	/* STREAM, DATA */
	FRAME_ENTRY = 50,	/* NAME, KIND, SIZE, MTIME: one of a listing */
	FRAME_FILE = 51,	/* PATH, SIZE, MTIME, DISPLAYED: a file;
				 * PART_CONTENT follows as FRAME_BYTES */
	FRAME_LEFT_OUT = 52,	/* PATH, SIZE, WHY, DISPLAYED: one not sent */
	FRAME_RESULT = 53,	/* REASON and its fields */
};

enum frame_tag {
	TAG_CLASS = 1,		/* text: a name in sandbox/broker/docker.c */
	TAG_SANDBOX = 2,	/* text: 32 lower-case hex digits */
	TAG_LEASE_MS = 3,	/* int: the broker kills the cell after this */
	TAG_CODE = 4,		/* int: enum refusal, or enum cell_error */
	TAG_TEXT = 5,		/* text: what happened, for a log */
	TAG_QUOTA_BYTES = 6,	/* int */
	TAG_QUOTA_FILES = 7,	/* int */
	TAG_COLD = 8,		/* int: 1 when the cell had to be started */
	TAG_CELL_NAME = 9,	/* text: the container's name */
	TAG_PYTHON = 10,	/* text: "3.11.2" */
	TAG_INTERPRETER = 11,	/* text: of SANDBOX_IMAGES, or IL_CHAT_IMAGES;
				 * absent: the first, for "user" the cell's */
	TAG_ISOLATION = 12,	/* int: enum isolation; 0: no api cell told */
	TAG_RETIRE = 13,	/* int: 1: do not use the cell again */
	TAG_ACCESS = 14,	/* int: enum access; absent: ACCESS_WRITE */
	TAG_IMPORTS = 15,	/* int: modules, as base/config.h has them */

	/* requests */
	TAG_OP = 16,		/* int: enum cell_op */
	TAG_PATH = 17,		/* bytes: relative to the workspace, '/'
				 * between, "" for the workspace itself */
	TAG_CWD = 18,		/* bytes: like PATH, where a run starts */
	TAG_NAME = 19,		/* bytes: of an entry; code's, as /code/NAME */
	TAG_ARG = 20,		/* bytes, repeated: sys.argv[1:], packages */
	TAG_ECHO = 21,		/* int: 1 shows the last bare expression */
	TAG_MERGE = 22,		/* int: 1 sends stderr into the stdout pipe */
	TAG_WALL_MS = 23,	/* int: wall clock limit of the run */
	TAG_OUTPUT_MAX = 24,	/* int: bytes over both streams, then the run is
				 * ended with REASON_OUTPUT (OUTPUT_MODE) */
	TAG_COLLECT_FILES = 25, /* int: changed files to send at most; 0 none */
	TAG_COLLECT_BYTES = 26, /* int: at most this many bytes of each file */
	TAG_COLLECT_TOTAL = 27, /* int: and of all together */
	TAG_OFFSET = 28,	/* int: first entry of a listing to send */
	TAG_COUNT = 29,		/* int: entries to send at most */
	TAG_MAX_BYTES = 30,	/* int: of a file to read; over it:
				 * ERROR_TOO_LARGE unless TAG_CUT */
	TAG_RECURSIVE = 31,	/* int */
	TAG_INDEX_URL = 32,	/* text: for pip; absent: its default */
	TAG_SDIST = 33,		/* int: 1 lets pip build from source */
	TAG_CA = 34,		/* int: 1: the CA bundle is at /run/ca.pem */
	TAG_CUT = 35,		/* int: 1: send MAX_BYTES of a longer file; in
				 * RESULT: not all of the folder was seen */
	/* requests to cells of the classes api and session */
	TAG_FOLDER = 36,	/* text: "/home" or "/workspace" (if absent):
				 * what is the workspace of this request */
	TAG_ENV = 37,		/* bytes, repeated: "KEY=VALUE", all of them */
	TAG_PLAIN = 38,		/* int: 1: PART_ARGS are words of the program */
	TAG_LIMIT_MEMORY = 39,	/* int: bytes of address space of a process */
	TAG_LIMIT_PROCESSES = 40, /* int: and threads, of the run */
	TAG_LIMIT_FILES = 41,	/* int: descriptors of a process */
	TAG_LIMIT_CPU = 42,	/* int: seconds of a process, then SIGKILL */
	TAG_OUTPUT_MODE = 43,	/* int: enum output_mode */
	TAG_COLLECT_HOW = 44,	/* int: enum collect_how, added up */
	TAG_COLLECT_MS = 45,	/* int: to look for and send files */
	TAG_MODE = 46,		/* int: permissions of a file, 0644 if absent */
	TAG_ALWAYS = 47,	/* int: 1: send the file back in any case */
	TAG_KEEP = 56,		/* int: 1: keep the interpreter of this run for
				 * the next one, if there is none kept already;
				 * of a lease: this may be asked in it */
	TAG_LIVE = 57,		/* int: 1: GO brings a pipe's end as stdin */
	TAG_DISPLAY = 58,	/* int: 1: PATH runs as in a notebook */
	TAG_END_ALL = 59,	/* int: 1: a session's processes end with it */

	/* pieces */
	TAG_PART = 48,		/* int: enum frame_part */
	TAG_DATA = 49,		/* bytes, at most FRAME_CHUNK */
	TAG_STREAM = 50,	/* int: 1 stdout, 2 stderr */
	TAG_KIND = 51,		/* int: enum entry_kind */
	TAG_SIZE = 52,		/* int: bytes; in FILE: those that follow */
	TAG_MTIME = 53,		/* int: Unix seconds */
	TAG_WHY = 54,		/* int: enum left_out */
	TAG_DISPLAYED = 55,	/* int: 1: a picture that a run has displayed;
				 * it is in no workspace, PATH is its name */

	/* results */
	TAG_REASON = 64,	/* int: enum run_reason */
	TAG_STATUS = 65,	/* int: exit status 0..255 */
	TAG_SIGNAL = 66,	/* int: signal number */
	TAG_WALL_US = 67,	/* int */
	TAG_CPU_US = 68,	/* int: user + system, all of its processes */
	TAG_MAX_RSS = 69,	/* int: bytes, of the largest process */
	TAG_USED_BYTES = 70,	/* int: in the workspace, after the request */
	TAG_USED_FILES = 71,	/* int */
	TAG_TOTAL = 72,		/* int: entries of the whole listing; size of
				 * the whole file; files changed by a run */
	TAG_DISK_FULL = 73,	/* int: enum disk_full: none left at its end */
	TAG_KEPT = 74,		/* int: 1: the run's interpreter is kept */
	TAG_KEPT_NAMES = 75,	/* int: variables in it, as it says itself */
	TAG_KEPT_BYTES = 76,	/* int: memory that it holds */
	TAG_WENT_ON = 77,	/* int: 1: the run began in the kept one */
	TAG_REST_MS = 79,	/* int: of a session; LEASE: at most; REFUSED:
				 * until one may be evicted */
	TAG_ENDED = 78,		/* int: enum kept_end, of one before; once */
	TAG_OWNER = 80,		/* int: whose files they are on the disk */
	TAG_USER = 81,		/* int: whose they are in the cell */
	TAG_USED_PACKAGES = 82, /* int: bytes; of operations on files */
	TAG_SESSION = 83,	/* text: an API's, 32 lower-case hex digits */
	TAG_TOKEN = 84,		/* bytes: hash of its owner's (lease.h) */

	/* status */
	TAG_ENGINE = 96,	/* int: 1 reachable */
	TAG_IMAGE = 97,		/* int: 1 present */
	TAG_IMAGE_NAME = 98,	/* text */
	TAG_CELLS = 99,		/* int: running, leased or not */
	TAG_LEASED = 100,	/* int */
	TAG_STARTING = 101,	/* int */
	TAG_WAITING = 102,	/* int: lease requests in the queue */
	TAG_FREE_BYTES = 103,	/* int: on the file system of the workspaces */
	TAG_IMAGES = 104,	/* text: SANDBOX_IMAGES */
	TAG_PROMISED = 105,	/* int: of FREE_BYTES: to those who may write */
	TAG_FLOOR = 106,	/* int: of FREE_BYTES: to nobody */
	TAG_SANDBOXES = 107,	/* int: that are there */
	TAG_ENGINE_AGE = 110,	/* int: ms since ENGINE was asked, if it was */
	TAG_TROUBLE = 111,	/* text: why one of them is away, or a module */
	TAG_CHAT_IMAGES = 112,	/* text: IL_CHAT_IMAGES */
	TAG_STATE = 113,	/* text: what a cell is at */
	TAG_STATE_MS = 114,	/* int: for so long */
	TAG_RUNS = 115,		/* int: leases that are over */
	TAG_PID = 116,		/* int: of its first process; 0: not known */
	TAG_START_FAILURES = 117, /* int: starts in a row that have failed */
	TAG_START_PENDING = 118, /* int: ms; starts go on, and none succeeds */
};

enum attach_end { ATTACH_DONE = 0, ATTACH_VOLUME = 1, ATTACH_HOST = 2 };
enum disk_full { DISK_FULL_BYTES = 1, DISK_FULL_FILES = 2 };

/* Isolation of a run in an api cell from the others. */
enum isolation {
	ISOLATION_CELL = 1,	/* one run, then the cell ends */
	ISOLATION_RUN = 2,	/* namespaces of its own for each run */
};

/* Access of a lease to a sandbox; it is granted as wanted but for ACCESS_ANY.
 * The broker enforces it by its mounts, the cell by the operations it takes. */
enum access {
	ACCESS_WRITE = 1, /* everything; there is room for all it may write */
	ACCESS_TIDY = 2,  /* LIST, READ, STAT, ARCHIVE, REMOVE, NAMES,
			 * PACKAGES, UNINSTALL: these need no room */
	ACCESS_READ = 3,  /* everything, but nothing can be written */
	ACCESS_ANY = 4,	  /* only wanted: ACCESS_WRITE, else ACCESS_READ */
	ACCESS_LOOK = 5,  /* LIST, READ, STAT, ARCHIVE, PACKAGES, beside a run
			   * that it ends with; without one as ACCESS_TIDY */
};

/* Why there is no lease: an expected outcome, no error.  All pass with their
 * cause but REFUSAL_INPUT, which is our own fault, and REFUSAL_INTERPRETER. */
enum refusal {
	REFUSAL_NONE = 0,	/* it was granted; not sent */
	REFUSAL_INPUT = 1,	/* malformed, or not for this program to make */
	REFUSAL_BUSY = 2,	/* it is leased to another */
	REFUSAL_FULL = 3,	/* the queue is full; for sessions: all cells */
	REFUSAL_ENGINE = 4,	/* the Docker engine does not answer */
	REFUSAL_IMAGE = 5,	/* the image is missing */
	REFUSAL_NO_WORKSPACE = 6, /* there is no such workspace or session */
	REFUSAL_DISK = 7,	/* the disk has no room to write for one more */
	REFUSAL_START = 8,	/* the cell did not start */
	REFUSAL_INTERPRETER = 9, /* not on offer */
	REFUSAL_SANDBOXES = 10,	/* there are as many as there may be */
	/* the client's own, where no answer came */
	REFUSAL_UNREACHABLE = 11, /* the broker does not answer (it restarts) */
	REFUSAL_TIME = 12,	/* not in time, or nobody waits for it */
};

enum cell_op {
	OP_RUN = 1,	/* PART_SOURCE or PATH (a file), CWD, NAME, ARG…, ECHO,
			 * MERGE, PART_STDIN, INPUT…, WALL_MS, OUTPUT_MAX,
			 * COLLECT_* → STARTED, OUTPUT…, then FILE, BYTES… and
			 * LEFT_OUT, what was displayed first, TOTAL */
	OP_LIST = 2,	/* PATH, OFFSET, COUNT → ENTRY…, TOTAL; directories
			 * first, then by name */
	OP_READ = 3,	/* PATH, MAX_BYTES, CUT → FILE, BYTES…, TOTAL */
	OP_WRITE = 4,	/* PATH, PART_CONTENT; parents are made; replaces whole
			 * or not at all */
	OP_REMOVE = 5,	/* PATH, RECURSIVE */
	OP_PIP = 6,	/* ARG… (requirements), WALL_MS, OUTPUT_MAX → STARTED,
			 * OUTPUT…; a cell that mounts /site does this and
			 * nothing else, no other does */
	OP_STAT = 7,	/* PATH → ENTRY; "" is the workspace, named "." */
	OP_STAGE = 8,	/* INPUT…: files, and nothing else; STATUS 1: the image
			 * has no bash for OP_BASH */
	OP_BASH = 9,	/* PART_SOURCE: a command, for `bash -c`, or sh; ARG…
			 * ("$@"); else as OP_RUN, without PATH, NAME, ECHO */
	OP_NAMES = 10,	/* COUNT, MAX_BYTES (of each), WALL_MS, OUTPUT_MAX →
			 * OUTPUT: a letter, a path, a NUL for each: 'd' of a
			 * directory, 'f' of anything else; the nearest first */
	OP_PACKAGES = 11, /* COUNT, MAX_BYTES (of a RECORD), OUTPUT_MAX →
			 * OUTPUT, likewise: 'v', the minor version of Python;
			 * for each project 'p', its name, and, if known, 'n',
			 * its version, and 's', its bytes; TOTAL */
	OP_UNINSTALL = 12, /* NAME: a project; in a cell that mounts /site */
	OP_ARCHIVE = 13, /* PATH (a directory), MAX_BYTES, COUNT (of entries) →
			 * LEFT_OUT…, TOTAL of these, FILE, BYTES…: a zip */
};

/* Action at OUTPUT_MAX. */
enum output_mode {
	OUTPUT_END = 0,	  /* both streams together: the run is ended */
	OUTPUT_DRAIN = 1, /* each stream: the rest of it is dropped */
};

/* Files of an api cell that count as made or changed by the run: new ones, and
 * staged ones of another inode, size or time (0), or as said here. */
enum collect_how {
	COLLECT_BYTES = 1,	   /* with other bytes */
	COLLECT_MTIME = 2,	   /* with another mtime */
	COLLECT_NO_DOT = 4,	   /* no name with a dot before it */
	COLLECT_NO_UNDERSCORE = 8, /* no file with a '_' before it */
	COLLECT_LINKS = 16,	   /* and the file that a link leads to */
	COLLECT_GONE = 32,	   /* and tell staged files that are gone */
	COLLECT_NEW = 64, /* no file that is as it was before the request */
};

enum frame_part {
	PART_SOURCE = 1,
	PART_STDIN = 2,
	PART_CONTENT = 3,
	PART_ARGS = 4, /* the words of a command line, a NUL after each */
};

enum entry_kind {
	ENTRY_FILE = 1,
	ENTRY_DIRECTORY = 2,
	ENTRY_LINK = 3,
	ENTRY_OTHER = 4,
};

enum left_out {
	LEFT_OUT_COUNT = 1,	/* more files than COLLECT_FILES */
	LEFT_OUT_SIZE = 2,	/* larger than COLLECT_BYTES */
	LEFT_OUT_TOTAL = 3,	/* over COLLECT_TOTAL together */
	LEFT_OUT_UNREADABLE = 4,
	LEFT_OUT_TIME = 5, /* COLLECT_MS was over */
	LEFT_OUT_PATH = 6, /* too deep, or its path too long */
	LEFT_OUT_KIND = 7, /* a link, a pipe, a socket: no regular file */
	LEFT_OUT_GONE = 8, /* it was staged, and the run has removed it */
};

/* End of a request. */
enum run_reason {
	REASON_EXIT = 1,	/* STATUS; also: the operation succeeded */
	REASON_SIGNAL = 2,	/* SIGNAL */
	REASON_TIME = 3,	/* wall clock limit */
	REASON_MEMORY = 4,	/* killed by the memory limit: SIGNAL */
	REASON_OUTPUT = 5,	/* output limit */
	REASON_ERROR = 6,	/* the operation failed: CODE, TEXT */
};

/* Why an interpreter is not kept any more.  The next run is told: by the cell,
 * of an end in it; by the broker, of the cells that it ended. */
enum kept_end {
	KEPT_RESTED = 1,	/* for IL_SESSION_SECONDS */
	KEPT_GAVE_WAY = 2,	/* others needed the place */
	KEPT_PACKAGES = 3,	/* they have changed, or were looked at */
	KEPT_REPLACED = 4,	/* its cell, by one that may write or may not */
	KEPT_DIED = 5,		/* at rest, or with its cell */
	KEPT_RESTARTED = 6,	/* the broker knows of none */
	KEPT_STOPPED = 7,	/* as its owner wanted */
	KEPT_EXITED = 8,	/* in a run, as the next: by its code */
	KEPT_TIME = 9,
	KEPT_OUTPUT = 10,
	KEPT_MEMORY = 11,
	KEPT_SIGNAL = 12,
	KEPT_BROKEN_OFF = 13,	/* cancelled, or its client has died */
	KEPT_PROCESSES = 14,	/* it left no room for another one */
};

/* Why an operation on the workspace failed (TAG_CODE of a REASON_ERROR). */
enum cell_error {
	ERROR_NOT_INSIDE = 1,	/* absolute, "..", a link on the way, NUL, over
				 * LIMIT_NAME or LIMIT_PATH */
	ERROR_NOT_FOUND = 2,
	ERROR_IS_DIRECTORY = 3,
	ERROR_NOT_DIRECTORY = 4,
	ERROR_TOO_LARGE = 5,	/* SIZE says how large it is */
	ERROR_NO_SPACE = 6,	/* disk quota or file count */
	ERROR_NOT_EMPTY = 7,	/* a directory without RECURSIVE */
	ERROR_NOT_REGULAR = 8,	/* FIFO, socket, device */
	ERROR_PERMISSION = 9,
	ERROR_REQUEST = 10,	/* the request makes no sense: our own fault */
	ERROR_FAILED = 11,	/* anything else: TEXT says what */
	ERROR_READ_ONLY = 12,	/* nothing can be written there */
};
/* clang-format on */

/* ---- writing a frame ---- */

struct frame {
	size_t len;
	bool overflow; /* a field did not fit: frame_send refuses it */
	unsigned char data[FRAME_MAX];
};

void frame_start(struct frame *f, enum frame_kind kind);
void frame_add_bytes(struct frame *f, enum frame_tag tag, const void *data,
    size_t len);
void frame_add_int(struct frame *f, enum frame_tag tag, int64_t value);
/* The same where an absent field means zero. */
void frame_add_nonzero(struct frame *f, enum frame_tag tag, int64_t value);
/* text NULL: the field is absent. */
void frame_add_text(struct frame *f, enum frame_tag tag, const char *text);

/* ---- reading a frame ---- */

struct frame_view {
	enum frame_kind kind;
	const unsigned char *data; /* the packet, borrowed */
	size_t len;
};

struct frame_field {
	enum frame_tag tag;
	const unsigned char *data;
	size_t len;
};

/* Check the whole structure: a known kind, every length, the size of every
 * known integer, no known tag twice (but TAG_ARG and TAG_ENV).  False: not a
 * frame. */
bool frame_parse(struct frame_view *view, const void *packet, size_t len);
/* Walk the fields: *pos starts at 0; false at the end. */
bool frame_next(const struct frame_view *view, size_t *pos,
    struct frame_field *field);
/* Find one field.  False: absent; an _int not of 8 bytes; a _text with a NUL or
 * longer than size - 1 bytes, which otherwise is copied and NUL-terminated. */
bool frame_get_int(const struct frame_view *view, enum frame_tag tag,
    int64_t *value);
bool frame_get_bytes(const struct frame_view *view, enum frame_tag tag,
    const unsigned char **data, size_t *len);
bool frame_get_text(const struct frame_view *view, enum frame_tag tag,
    char *text, size_t size);

#endif
