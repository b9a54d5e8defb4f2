//! Tests of limits on what programs, components and tenants may do.

mod additional_directories;
mod agents_http;
mod card_scopes;
mod confinement;
mod hostile;
mod logins;
mod red_team;
mod tenants;
mod who_asks;
mod working_directories;
