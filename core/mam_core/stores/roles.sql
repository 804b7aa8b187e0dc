-- Who may do what in a registry's database, with no more rights than needed.
--
--     psql -v ON_ERROR_STOP=1 -v schema=mam -f roles.sql DATABASE      (as an administrator)
--
-- mam_owner makes the tables and changes them with a new version of mam; mam_worker only reads and
-- writes rows, which is all that consoles, workers and agents do. Give people and hosts logins of
-- their own and grant them one of the two:
--
--     CREATE ROLE host1 LOGIN PASSWORD '…' IN ROLE mam_worker;
--
-- The url names the schema: postgresql://host1@db/jobs?options=-csearch_path%3Dmam
-- Run it again whenever you like: nothing is done twice.

\if :{?schema}
\else
    \set schema mam
\endif

SELECT format('CREATE ROLE %I NOLOGIN', name) FROM unnest(ARRAY['mam_owner', 'mam_worker']) AS name
WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name)
\gexec

CREATE SCHEMA IF NOT EXISTS :"schema" AUTHORIZATION mam_owner;
REVOKE ALL ON SCHEMA :"schema" FROM PUBLIC;
GRANT USAGE ON SCHEMA :"schema" TO mam_worker;

-- Tables that are there, and those that mam_owner or a member of it will make.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA :"schema" TO mam_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE mam_owner IN SCHEMA :"schema"
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO mam_worker;
