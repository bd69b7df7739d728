CREATE TABLE @tenants (
	tenant text COLLATE "C" NOT NULL,
	shard integer NOT NULL,
	PRIMARY KEY (tenant)
);
CREATE TABLE @generations (
	tenant text COLLATE "C" NOT NULL,
	generation bigint NOT NULL,
	PRIMARY KEY (tenant, generation)
);
CREATE TABLE @rows (
	tenant text COLLATE "C" NOT NULL,
	key bytea NOT NULL,
	version bigint NOT NULL,
	value bytea NOT NULL,
	PRIMARY KEY (tenant, key)
);
CREATE TABLE @blobs (
	tenant text COLLATE "C" NOT NULL,
	id bytea NOT NULL,
	base bytea,
	size bigint NOT NULL,
	generation bigint NOT NULL,
	stored_at bigint NOT NULL,
	object text,
	data bytea,
	PRIMARY KEY (tenant, id)
);
CREATE INDEX blobs_base ON @blobs (tenant, base) WHERE base IS NOT NULL;
CREATE TABLE @commits (
	minute bigint NOT NULL,
	id bytea NOT NULL,
	PRIMARY KEY (minute, id)
);
