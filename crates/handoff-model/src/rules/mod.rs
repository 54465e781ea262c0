//! Files with rules: checks of protocol folders, settings, strictness, and gate policies.

mod contradictions;
mod gate_policy;
mod loosened;
mod mistakes;
mod protocol_check;
mod setting;
mod strictness;
mod template_check;

pub use gate_policy::{Exemption, GatePolicy};
pub use loosened::{ADDED_SIGNER, loosened};
pub use protocol_check::{
    NO_CLAIMS, ProtocolFiles, ProtocolScope, beyond_cost, check_protocol, check_protocol_for,
};
pub use setting::{
    Assignment, SETTINGS, Setting, SettingError, has_settings, is_earlier, is_set, keep_settings,
    next_version, only_setting_changed, with_version,
};
pub use strictness::{Strictness, Weakness, weaker, why_weaker};
pub use template_check::Filled;
