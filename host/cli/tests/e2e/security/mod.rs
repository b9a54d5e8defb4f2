//! Tests of limits on what programs, components and tenants may do.

mod command_access;
mod confinement;
mod devices;
mod people;
mod red_team;
mod tenants;
mod tls;
mod who_asks;
