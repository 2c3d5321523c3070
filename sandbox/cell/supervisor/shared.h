/* SPDX-License-Identifier: MIT */
#ifndef SHARED_H
#define SHARED_H

#include <stdint.h>

/* What C and the interpreter share, in the interpreter's memory.  The build
 * makes shared.py of this file (sandbox/protocol/header.py). */
enum supervisor_role {
	SUPERVISOR_FAILED = -1, /* supervisor.why says what */
	SUPERVISOR_DONE = 0,	/* below: a child, which goes on in Python */
	SUPERVISOR_RUN = 1,	/* has its lease: reads the request */
	SUPERVISOR_HARVEST = 2, /* not confined; sends files and the result */
	SUPERVISOR_FAST = 3,	/* is the run already, see supervisor_fast */
	SUPERVISOR_AHEAD = 4,	/* rehearses, then run_process_take() */
	SUPERVISOR_TIDY = 5,	/* removes what a lease has left */
	SUPERVISOR_BESIDE = 6,	/* reads files for lease, while a run goes on */
};

/* A memory file system that each jail gets anew. */
struct supervisor_mount {
	const char *path;
	const char *options;
	uint64_t flags;
	uint64_t leases; /* who may write to it: bits, by SUPERVISOR_FOLDERS */
};

/* Which requests are read in C? */
enum supervisor_reads {
	SUPERVISOR_READS_NONE = 0,
	SUPERVISOR_READS_PLAIN = 1,  /* `python -c CODE`, or one file */
	SUPERVISOR_READS_SOURCE = 2, /* a person's source */
};

/* When are the files of a run looked for?  If any are wanted, */
enum supervisor_after {
	SUPERVISOR_IF_ANY = 0,	   /* and its file system holds any */
	SUPERVISOR_IF_CHANGED = 1, /* and look_note() differs, or pictures */
	SUPERVISOR_ALWAYS = 2,
};

/* What a run's process tells before it is the run; checked when it comes. */
struct supervisor_plan {
	uint64_t wall_ms;
	uint64_t output_max; /* bytes of both streams, with drains of each */
	uint64_t drains;     /* 1: output over it is dropped, else it ends */
	uint64_t folder; /* whose files count: number in SUPERVISOR_FOLDERS */
	uint64_t input;	 /* bytes in supervisor.file: standard input, */
	uint64_t notes;	 /* and behind it what harvest.py must know */
	uint64_t after;	 /* enum supervisor_after */
	uint64_t files;	 /* to be sent at most; 0: none are looked for */
	uint64_t bytes;
	uint64_t total;
	uint64_t how;
	uint64_t ms;
	uint64_t keep;	  /* 1: it says struct kept_word in the end */
	uint64_t end_all; /* 1: of a session: no process outlives the run */
	uint64_t inode;	  /* of the one file that came, 0: none: alone there, */
	uint64_t ctime;	  /* and of this time (ns), it is not looked for */
};
/* The last one is that of packages: no request names it. */
#define SUPERVISOR_FOLDERS "/home", "/workspace", "/site"
#define SUPERVISOR_FOLDER_COUNT 3
#define SUPERVISOR_WORKSPACE 1
#define SUPERVISOR_SITE 2
#define SUPERVISOR_CODE "/code"	      /* where inline source lies, */
#define SUPERVISOR_PICTURE "picture-" /* and what a run has displayed */
#define SUPERVISOR_LOOK_CUT 65535     /* see look.h */
#define SUPERVISOR_PACKETS 6	      /* of a usual request, with GO */
#define SUPERVISOR_LIMITS 4
#define SUPERVISOR_TERMS_MAX 8192
#define SUPERVISOR_WORDS_MAX 65536
#define SUPERVISOR_RESULT_MAX 256
#define SUPERVISOR_WHY_MAX 128
#define SUPERVISOR_PROCESSES "/proc/.pids"
#define SUPERVISOR_ID 65532 /* uid and gid of a run, as it sees itself */
/* Requests for which all is ready but the code: `-c CODE` alone, and a file. */
#define SUPERVISOR_COMMAND 1
#define SUPERVISOR_PROGRAM 2 /* behind its name stands its source */
#define SUPERVISOR_MAIN "__main__.py"
#define SUPERVISOR_FORMS 3

/* A fast request, all of it there, see fast_path.h: the process is its run. */
struct supervisor_fast {
	uint64_t words_len;
	uint64_t env_len;
	uint64_t title_len; /* of what a file is called; behind env */
	uint64_t echo;
	uint64_t by_path; /* 1: it is a file, by PATH; 0: as python has it */
	uint64_t usual;	  /* which of those; 0: none */
	uint64_t display; /* 1: it shows pictures, see display.py */
	char words[SUPERVISOR_WORDS_MAX]; /* a NUL after each; or the source */
	char env[SUPERVISOR_WORDS_MAX]; /* NAME=VALUE, likewise; or its name */
};
extern struct supervisor_fast supervisor_fast;

/* The caller's storage.  Descriptors are borrowed, and -1 is none. */
struct supervisor {
	const struct supervisor_mount *mounts; /* of the caller, for good */
	uint64_t mount_count;
	const void *filter; /* struct sock_fprog: the calls left to a run */
	const void *usual[SUPERVISOR_FORMS]; /* their environments, like env */
	uint64_t usual_len[SUPERVISOR_FORMS];
	void *variables;	   /* the program's, for environ */
	void (*before_fork)(void); /* the interpreter's, around fork() */
	void (*in_parent)(void);
	void (*in_child)(void);
	uint32_t uid; /* who we are outside of our user namespace */
	uint32_t gid;
	int32_t control; /* the connection to the broker */
	int32_t ooms;	 /* the file that counts the memory limit's kills */
	int32_t proc;	 /* O_PATH of a /proc that is covered by now */
	int32_t shown;	 /* O_PATH: a run's /proc but its processes; -1: none */
	int32_t pids;	 /* our pid namespace, by supervisor_init() */
	uint32_t counts; /* 1: processes are counted in user namespaces */
	uint32_t jailed; /* 1: a jail for each lease, which is one run */
	uint32_t lasts;	 /* 1: a lease may have several requests */
	uint32_t once;	 /* 1: there is one lease, and then the end */
	uint32_t reads;	 /* enum supervisor_reads */
	uint32_t shows;	 /* so many runs have a /proc made ahead, see jail.c */
	uint32_t tries;	 /* 1: no lease comes, a jail is only tried */
	uint32_t tidies; /* 1: a child tidies after each lease in any case */
	uint32_t own_files; /* what a folder's file system uses by itself */
	uint32_t own_blocks;
	int32_t channel; /* of the run of the moment: takes its plan */
	int32_t in;	 /* what will be its standard streams */
	int32_t out;
	int32_t err;
	int32_t file;	/* empty: for standard input, and notes */
	int32_t brief;	/* empty: what the kept process is to do */
	int32_t lease;	/* its own, and what was received on it */
	int32_t cwd;	/* where it will be; -1: in the plan's folder */
	uint32_t merge; /* 1: standard error goes where output goes */
	uint32_t kept;	/* 1: there is a kept process, see kept.h */
	uint32_t packet_count;
	const char *packets[SUPERVISOR_PACKETS];
	uint64_t packet_len[SUPERVISOR_PACKETS];
	const void *input; /* plan.input bytes of a packet: standard input */
	uint64_t limits[SUPERVISOR_LIMITS]; /* enum fast_limit; 0: none */
	int32_t folder; /* of the run, by its process; ended: lease, too */
	struct supervisor_plan plan;
	uint32_t result_len;
	uint8_t result[SUPERVISOR_RESULT_MAX]; /* beginning of FRAME_RESULT */
	char why[SUPERVISOR_WHY_MAX]; /* "mount 13": what failed, its errno */
	struct run_state *state;
	uint32_t terms_len; /* the frame by which the broker gave the lease */
	uint8_t terms[SUPERVISOR_TERMS_MAX];
};

#endif
