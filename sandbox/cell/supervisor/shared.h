/* SPDX-License-Identifier: MIT */
#ifndef SHARED_H
#define SHARED_H

#include <stdint.h>

/* Memory of the interpreter that it shares with C.  The build makes shared.py
 * of this file (sandbox/protocol/header.py). */
enum supervisor_role {
	SUPERVISOR_FAILED = -1, /* supervisor.why has the reason */
	SUPERVISOR_DONE = 0,	/* below: a child, which goes on in Python */
	SUPERVISOR_RUN = 1,	/* has its lease: reads the request */
	SUPERVISOR_HARVEST = 2, /* not confined; sends files and the result */
	SUPERVISOR_FAST = 3,	/* is the run already, see supervisor_fast */
	SUPERVISOR_AHEAD = 4,	/* rehearses, then run_process_start() */
	SUPERVISOR_TIDY = 5,	/* removes the remains of a lease */
	SUPERVISOR_BESIDE = 6,	/* reads files for lease, while a run goes on */
};

/* A memory file system that each jail gets anew. */
struct supervisor_mount {
	const char *path;
	const char *options;
	uint64_t flags;
	uint64_t leases; /* that may write to it: bits, by SUPERVISOR_FOLDERS */
};

/* Requests that are read in C. */
enum supervisor_reads {
	SUPERVISOR_READS_NONE = 0,
	SUPERVISOR_READS_PLAIN = 1,  /* `python -c CODE`, or one file */
	SUPERVISOR_READS_SOURCE = 2, /* a person's source */
};

/* When does the supervisor send the files of a run, if any are wanted? */
enum supervisor_after {
	SUPERVISOR_IF_ANY = 0,	   /* its file system holds any */
	SUPERVISOR_IF_CHANGED = 1, /* the listing differs, or pictures */
	SUPERVISOR_ALWAYS = 2,
};

/* A run's process sends this before it is the run; the receiver checks it. */
struct supervisor_plan {
	uint64_t wall_ms;
	uint64_t output_max; /* bytes of both streams, with drains of each */
	uint64_t drains;     /* 1: output over it is dropped, else it ends */
	uint64_t folder;     /* of the run: index of SUPERVISOR_FOLDERS */
	uint64_t input;	     /* bytes in supervisor.file: standard input, */
	uint64_t notes;	     /* and behind it the notes for harvest.py */
	uint64_t after;	     /* enum supervisor_after */
	uint64_t files;	     /* to be sent at most; 0: none */
	uint64_t bytes;
	uint64_t total;
	uint64_t how;
	uint64_t ms;
	uint64_t keep;	  /* 1: it says struct kept_word in the end */
	uint64_t end_all; /* 1: of a session: no process outlives the run */
	uint64_t inode;	  /* of the request's one file; 0: none */
	uint64_t ctime;	  /* of that file (ns): alone and unchanged, it is
			   * not sent back */
};
/* The last one is for packages: no request names it. */
#define SUPERVISOR_FOLDERS "/home", "/workspace", "/site"
#define SUPERVISOR_FOLDER_COUNT 3
#define SUPERVISOR_WORKSPACE 1
#define SUPERVISOR_SITE 2
#define SUPERVISOR_CODE "/code"	      /* folder of inline source */
#define SUPERVISOR_PICTURE "picture-" /* and of displayed pictures */
#define SUPERVISOR_LISTING_CUT 65535  /* see fast_path.h */
#define SUPERVISOR_PACKETS 6	      /* of a fast request, with GO */
#define SUPERVISOR_LIMITS 4
#define SUPERVISOR_TERMS_MAX 8192
#define SUPERVISOR_WORDS_MAX 65536
#define SUPERVISOR_RESULT_MAX 256
#define SUPERVISOR_WHY_MAX 128
#define SUPERVISOR_PROCESSES "/proc/.pids"
#define SUPERVISOR_ID 65532 /* uid and gid of a run, in its namespace */
/* Requests for which everything but the code is prepared: `-c CODE`, a file. */
#define SUPERVISOR_COMMAND 1
#define SUPERVISOR_PROGRAM 2 /* its source follows its name */
#define SUPERVISOR_MAIN "__main__.py"
#define SUPERVISOR_FORMS 3

/* A whole fast request (fast_path.h) in the process that is its run. */
struct supervisor_fast {
	uint64_t words_len;
	uint64_t env_len;
	uint64_t title_len; /* of the file's title, behind env */
	uint64_t echo;
	uint64_t by_path; /* 1: it is a file, by PATH; 0: as python has it */
	uint64_t usual;	  /* SUPERVISOR_COMMAND, _PROGRAM; 0: neither */
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
	uint32_t uid; /* ours, outside of our user namespace */
	uint32_t gid;
	int32_t control;    /* the connection to the broker */
	int32_t ooms;	    /* the file that counts the memory limit's kills */
	int32_t proc;	    /* O_PATH of a /proc that is covered by now */
	int32_t shown;	    /* O_PATH: a run's /proc without processes; -1 */
	int32_t pids;	    /* our pid namespace, by supervisor_init() */
	uint32_t jailed;    /* 1: a jail for each lease, which is one run */
	uint32_t lasts;	    /* 1: a lease may have several requests */
	uint32_t once;	    /* 1: there is one lease, and then the end */
	uint32_t reads;	    /* enum supervisor_reads */
	uint32_t shows;	    /* /proc is made ahead for so many more runs */
	uint32_t tries;	    /* 1: no lease comes, a jail is only tried */
	uint32_t tidies;    /* 1: a child tidies after each lease in any case */
	uint32_t own_files; /* used by an empty file system of a folder */
	uint32_t own_blocks;
	int32_t channel; /* of the current run, which sends its plan */
	int32_t in;	 /* the run's standard streams */
	int32_t out;
	int32_t err;
	int32_t file;	/* empty: for standard input, and notes */
	int32_t brief;	/* empty: for the task of the kept process */
	int32_t lease;	/* of the process; below: its first packets */
	int32_t cwd;	/* folder to start in; -1: the plan's folder */
	uint32_t merge; /* 1: standard error goes where output goes */
	uint32_t kept;	/* 1: there is a kept process, see kept.h */
	uint32_t packet_count;
	const char *packets[SUPERVISOR_PACKETS];
	uint64_t packet_len[SUPERVISOR_PACKETS];
	const void *input; /* plan.input bytes of a packet: standard input */
	uint64_t limits[SUPERVISOR_LIMITS]; /* enum fast_limit; 0: none */
	int32_t folder; /* for the child that sends files, like lease */
	struct supervisor_plan plan;
	uint32_t result_len;
	uint8_t result[SUPERVISOR_RESULT_MAX]; /* beginning of FRAME_RESULT */
	char why[SUPERVISOR_WHY_MAX]; /* "mount 13": failed step, errno */
	struct run_state *state;
	uint32_t terms_len; /* the frame by which the broker gave the lease */
	uint8_t terms[SUPERVISOR_TERMS_MAX];
};

#endif
