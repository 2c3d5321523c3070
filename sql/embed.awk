# SPDX-License-Identifier: MIT
# Make C out of the SQL files, so that the programs need no file to run.
#
#	awk -v out=h|c -f embed.awk sql/*.sql
#	    enum statement and statement_texts[], from lines `-- name: job_claim`
#	awk -v out=h|c -v migrations=1 -f embed.awk sql/migrations/NNN-name.sql
#	    migrations[], one for each file, numbered 1, 2, 3 without a gap
#
# `@job` and `@:job` stand for columns (sandbox/store/columns.def).
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
	if (number != count + 1)
		die("expected number " (count + 1))
	begin(substr(file, 5))
}

# The columns of sandbox/store/columns.def: their names, or ":name" each.
function columns(word,   colon, file, macro, row, all) {
	colon = sub(/^@:/, "", word) ? ":" : ""
	sub(/^@/, "", word)
	macro = toupper(word)
	file = "sandbox/store/columns.def"
	while ((getline row <file) > 0)
		if (index(row, macro "(") == 1) {
			sub(/^[^,]*, */, "", row)
			sub(/[,)].*/, "", row)
			all = all (all == "" ? "" : ", ") colon row
		}
	close(file)
	if (all == "")
		die("no columns " word)
	return all
}

function expand(line,   done) {
	while (match(line, /@:?[a-z_]+/)) {
		done = done substr(line, 1, RSTART - 1) \
			columns(substr(line, RSTART, RLENGTH))
		line = substr(line, RSTART + RLENGTH)
	}
	return done line
}

function escape(line) {
	gsub(/[\\"?]/, "\\\\&", line) # ? because of trigraphs
	gsub(/\t/, "\\t", line)
	return line
}

migrations && FNR == 1 { begin_migration() }

!migrations && /^-- name:/ {
	if (NF != 3)
		die("expected `-- name: job_claim`")
	begin($3)
	next
}

/^[ \t]*(--|$)/ { next }

{
	if (count == 0)
		die("SQL before the first `-- name:`")
	text[count] = text[count] "\n\t  \"" escape(migrations ? $0 : expand($0)) "\\n\""
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
	print "#ifndef STATEMENTS_H\n#define STATEMENTS_H\n"
	print "enum statement {"
	for (i = 1; i <= count; i++)
		print "\tSTATEMENT_" toupper(names[i]) ","
	print "\tSTATEMENT_COUNT\n};\n"
	print "struct statement_text {\n\tconst char *name;"
	print "\tconst char *sql;\n};\n"
	print "extern const struct statement_text"
	print "    statement_texts[STATEMENT_COUNT];\n\n#endif"
}

function source(   i) {
	# ISO C asks for 4,095 bytes of a literal, our compilers take more.
	print "#pragma GCC diagnostic ignored \"-Woverlength-strings\""
	if (migrations) {
		print "#include \"migrations.h\"\n"
		print "const struct migration migrations[] = {"
		for (i = 1; i <= count; i++)
			print "\t{ " i ", \"" names[i] "\"," text[i] " },"
		print "};\n\nconst int migration_count = " count ";"
		return
	}
	print "#include \"statements.h\"\n"
	print "const struct statement_text statement_texts[STATEMENT_COUNT] = {"
	for (i = 1; i <= count; i++)
		print "\t{ \"" names[i] "\"," text[i] " },"
	print "};"
}

END {
	if (failed)
		exit 1
	if (count > 0 && text[count] == "")
		die("'" names[count] "' is empty")
	print "/* Made by sql/embed.awk; do not edit. */"
	if (out == "h")
		header()
	else
		source()
}
