//! Tests of agents: plug-ins, their grants, their programs and tools.

mod example_agents;
mod fake_clis;
mod grants;
mod guests;
mod kept;
mod loading;
mod odd_tools;
mod tools;
