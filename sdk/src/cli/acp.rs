//! The Agent Client Protocol, as a driver.
