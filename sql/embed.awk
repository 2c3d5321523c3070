# SPDX-License-Identifier: MIT
# Make C out of the SQL files, so that the programs need no file to run.
#
#	awk -v out=h|c -f embed.awk sql/*.sql
#	    enum statement and statement_texts[], from lines `-- name: job_claim`
#	awk -v out=h|c -v migrations=1 -f embed.awk sql/migrations/NNN-name.sql
#	    migrations[], one for each file, numbered 1, 2, 3 without a gap
#
# With -v postgres=1 the same for PostgreSQL: enum pg_statement goes on
# where enum statement ends, `:name` becomes $1, $2, …, and migrations may
# begin at any number.  A comment `-- postgres: TEXT` is SQL for PostgreSQL
# alone, a line that ends in `-- sqlite` for SQLite alone; so is a statement
# named `-- name: connect_all sqlite`.
#
# Comment lines and empty lines are dropped.  A mistake ends with status 1 and
# FILE:LINE on standard error.

function die(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
	failed = 1
	exit 1
}

# Begin statement (or migration) number ++count.
function begin(name) {
	if (name !~ (migrations ? "^[a-z0-9-]+$" : "^[a-z][a-z0-9_]*$"))
		die("bad name '" name "'")
	if (name in seen)
		die("name '" name "' is taken")
	if (count > 0 && text[count] == "")
		die("'" names[count] "' before this line is empty")
	seen[name] = 1
	names[++count] = name
	text[count] = ""
}

function begin_migration(   file, number) {
	file = FILENAME
	sub(/^.*\//, "", file)
	sub(/\.sql$/, "", file)
	if (file !~ /^[0-9][0-9][0-9]-/)
		die("a migration is named NNN-name.sql")
	number = substr(file, 1, 3) + 0
	if (count == 0)
		first = postgres ? number : 1
	if (number != first + count)
		die("expected number " (first + count))
	begin(substr(file, 5))
}

function escape(line) {
	gsub(/[\\"?]/, "\\\\&", line) # ? because of trigraphs
	gsub(/\t/, "\\t", line)
	return line
}

migrations && FNR == 1 { begin_migration() }

# PostgreSQL has a number for each parameter, in the order of their names.
function number_parameters(line,   done, name, known, list, i) {
	done = ""
	while (match(line, /:[a-z][a-z_]*/)) {
		name = substr(line, RSTART, RLENGTH)
		known = split(parameters[count], list, " ")
		for (i = 1; i <= known && list[i] != name; i++)
			;
		if (i > known)
			parameters[count] = parameters[count] name " "
		done = done substr(line, 1, RSTART - 1) "$" i
		line = substr(line, RSTART + RLENGTH)
	}
	return done line
}

!migrations && /^-- name:/ {
	if (NF != 3 && !(NF == 4 && $4 == "sqlite"))
		die("expected `-- name: job_claim`")
	begin($3)
	absent = postgres && NF == 4
	if (absent)
		text[count] = " 0"
	next
}

absent { next }

/-- sqlite$/ {
	if (postgres)
		next
	sub(/[ \t]*-- sqlite$/, "")
}

postgres && /^[ \t]*-- postgres: / {
	sub(/-- postgres: /, "")
	if (!migrations) # what comes after the end
		sub(/;\\n"$/, "\\n\"", text[count])
}

/^[ \t]*(--|$)/ { next }

# The version is kept by who migrates.
postgres && /^PRAGMA / { next }

{
	if (count == 0)
		die("SQL before the first `-- name:`")
	if (postgres && !migrations)
		$0 = number_parameters($0)
	gives_id[count] = /RETURNING id$/
	text[count] = text[count] "\n\t  \"" escape($0) "\\n\""
}

function header(   i) {
	if (migrations) {
		print "#ifndef MIGRATIONS_H\n#define MIGRATIONS_H\n"
		print "struct migration {\n\tint version;"
		print "\tconst char *name;\n\tconst char *sql;\n};\n"
		print "extern const struct migration migrations[];"
		print "extern const int migration_count; /* the newest version */\n\n#endif"
		return
	}
	print "#ifndef " guard "\n#define " guard "\n"
	if (postgres)
		header_postgres()
	else
		header_sqlite()
	print "extern const struct " kind "statement_text"
	print "    " kind "statement_texts[" toupper(kind) "STATEMENT_COUNT];\n\n#endif"
}

function header_sqlite(   i) {
	print "enum statement {"
	for (i = 1; i <= count; i++)
		print "\tSTATEMENT_" toupper(names[i]) ","
	print "\tSTATEMENT_COUNT\n};\n"
	print "struct statement_text {\n\tconst char *name;"
	print "\tconst char *sql;\n};\n"
}

# Those before its own are counted as in enum statement.
function header_postgres(   i) {
	print "#include <stdbool.h>\n\nenum pg_statement {"
	for (i = 1; i <= count; i++)
		if (names[i] ~ /^pg_/)
			print "\t" toupper(names[i]) " = " i - 1 ","
	print "\tPG_STATEMENT_COUNT = " count "\n};\n"
	print "struct pg_statement_text {\n\tconst char *name;"
	print "\tbool gives_id;\n\tconst char *parameters; /* \":a :b \" */"
	print "\tconst char *sql; /* NULL: it has none */\n};\n"
}

function source(   i) {
	# ISO C asks for 4,095 bytes of a literal, our compilers take more.
	print "#pragma GCC diagnostic ignored \"-Woverlength-strings\""
	if (migrations) {
		print "#include \"" kind "migrations.h\"\n"
		print "const struct migration migrations[] = {"
		for (i = 1; i <= count; i++)
			print "\t{ " first + i - 1 ", \"" names[i] "\"," text[i] " },"
		if (postgres)
			print "\t{ 0, 0, 0 } /* the end */"
		print "};\n\nconst int migration_count = " first + count - 1 ";"
		return
	}
	print "#include \"" kind "statements.h\"\n"
	print "const struct " kind "statement_text"
	print "    " kind "statement_texts[" toupper(kind) "STATEMENT_COUNT] = {"
	for (i = 1; i <= count; i++)
		print "\t{ \"" names[i] "\"," (postgres ? " " gives_id[i] + 0 \
			", \"" parameters[i] "\"," : "") text[i] " },"
	print "};"
}

END {
	if (failed)
		exit 1
	if (count > 0 && text[count] == "")
		die("'" names[count] "' is empty")
	kind = postgres ? "pg_" : ""
	guard = toupper(kind) "STATEMENTS_H"
	print "/* Made by sql/embed.awk; do not edit. */"
	if (out == "h")
		header()
	else
		source()
}
