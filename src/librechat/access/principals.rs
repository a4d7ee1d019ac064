//! Those for whom an access entry or a capability may have been given: the user, its role, its
//! groups, everybody.

use std::collections::HashSet;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, RawBsonRef, RawDocument, doc};

use super::member::Member;

/// The permission bit for viewing, which is what using an agent takes (`PermissionBits.VIEW`).
const VIEW: i64 = 1;

/// All that the user is, as `getUserPrincipals` gathers it
/// (`packages/data-schemas/src/methods/userGroup.ts`, v0.8.8-rc1).
#[derive(Debug)]
pub(super) struct Principals<'a> {
    /// The user, and its role.
    pub(super) member: &'a Member,
    /// `groups._id` of the user's groups.
    pub(super) groups: HashSet<ObjectId>,
}

impl Principals<'_> {
    /// Whether this access entry lets the user view what it is about.
    ///
    /// An entry past `expiredAt` no longer counts. LibreChat leaves that to the index which deletes
    /// such entries, up to a minute late; a switch made in that minute would not last.
    pub(super) fn may_view_by(&self, entry: &RawDocument) -> bool {
        let is_public = entry
            .get_str("principalType")
            .is_ok_and(|kind| kind == "public");
        (is_public || self.are_meant_by(entry))
            && whole_number(entry, "permBits").is_some_and(|bits| bits >= 0 && bits & VIEW != 0)
            && is_current(entry, "expiredAt")
    }

    /// Whether this capability is the user's. `expiresAt` is reserved in v0.8.8-rc1 and not yet
    /// enforced there (`packages/data-schemas/src/schema/systemGrant.ts`).
    pub(super) fn hold(&self, grant: &RawDocument) -> bool {
        self.are_meant_by(grant) && is_current(grant, "expiresAt")
    }

    fn are_meant_by(&self, document: &RawDocument) -> bool {
        let id = document.get("principalId").ok().flatten();
        match (document.get_str("principalType"), id) {
            (Ok("user"), Some(RawBsonRef::ObjectId(id))) => id == self.member.id,
            (Ok("group"), Some(RawBsonRef::ObjectId(id))) => self.groups.contains(&id),
            (Ok("role"), Some(RawBsonRef::String(name))) => name == self.member.role,
            _ => false,
        }
    }
}

/// The entries and capabilities that could be for this user, before its groups are known.
pub(super) fn possibly_for(member: &Member) -> Vec<Document> {
    vec![
        doc! { "principalType": "user", "principalId": member.id },
        doc! { "principalType": "role", "principalId": Bson::from(member.role.as_str()) },
        doc! { "principalType": "group" },
        doc! { "principalType": "public" },
    ]
}

fn whole_number(document: &RawDocument, key: &str) -> Option<i64> {
    match document.get(key).ok()?? {
        RawBsonRef::Int32(number) => Some(number.into()),
        RawBsonRef::Int64(number) => Some(number),
        RawBsonRef::Double(number) if number.fract() == 0.0 && number.abs() < 1e9 =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 1e9")]
            Some(number as i64)
        }
        _ => None,
    }
}

/// Whether the date at `key` is still to come; no date is for ever, another type never holds.
fn is_current(document: &RawDocument, key: &str) -> bool {
    match document.get(key) {
        Ok(None | Some(RawBsonRef::Null)) => true,
        Ok(Some(RawBsonRef::DateTime(end))) => end > DateTime::now(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use mongodb::bson::RawDocumentBuf;

    use super::*;

    const USER: [u8; 12] = [1; 12];
    const GROUP: [u8; 12] = [2; 12];
    const OTHER: [u8; 12] = [3; 12];

    fn views(entry: &Document) -> bool {
        let member = Member {
            id: ObjectId::from_bytes(USER),
            role: "EDITOR".into(),
            in_groups_as: String::new(),
            tenant: None,
        };
        let principals = Principals {
            member: &member,
            groups: HashSet::from([ObjectId::from_bytes(GROUP)]),
        };
        principals.may_view_by(&RawDocumentBuf::try_from(entry).unwrap())
    }

    fn entry(kind: &str, id: impl Into<Bson>, bits: impl Into<Bson>) -> Document {
        doc! { "principalType": kind, "principalId": id.into(), "permBits": bits.into() }
    }

    #[test]
    fn the_user_its_role_its_groups_and_everybody_may_be_meant() {
        assert!(views(&entry("user", ObjectId::from_bytes(USER), 1)));
        assert!(views(&entry("group", ObjectId::from_bytes(GROUP), 15)));
        assert!(views(&entry("role", "EDITOR", 3)));
        assert!(views(&doc! { "principalType": "public", "permBits": 1 }));

        assert!(!views(&entry("user", ObjectId::from_bytes(OTHER), 15)));
        assert!(!views(&entry("group", ObjectId::from_bytes(OTHER), 15)));
        assert!(!views(&entry("role", "ADMIN", 15)));
    }

    #[test]
    fn only_an_entry_with_the_view_bit_counts_whatever_the_type_of_the_number() {
        let user = ObjectId::from_bytes(USER);
        assert!(views(&entry("user", user, 1.0)));
        assert!(views(&entry("user", user, 3_i64)));
        for bits in [
            Bson::Int32(2),
            Bson::Int32(0),
            Bson::Int32(-1),
            Bson::Double(1.5),
            Bson::Double(f64::NAN),
            Bson::Double(f64::INFINITY),
            Bson::String("1".into()),
            Bson::Array(vec![Bson::Int32(1)]),
            Bson::Null,
        ] {
            assert!(!views(&entry("user", user, bits.clone())), "{bits:?}");
        }
    }

    #[test]
    fn an_id_of_a_wrong_type_means_nobody() {
        let user = ObjectId::from_bytes(USER);
        assert!(!views(&entry("user", user.to_hex(), 1)));
        assert!(!views(&entry("user", vec![user], 1)));
        assert!(!views(&entry("role", vec!["EDITOR"], 1)));
        assert!(!views(&entry("user", Bson::Null, 1)));
        assert!(!views(
            &doc! { "principalType": 5, "principalId": user, "permBits": 1 }
        ));
        assert!(!views(&doc! { "permBits": 1 }));
    }

    #[test]
    fn an_entry_counts_until_it_expires() {
        let user = ObjectId::from_bytes(USER);
        let with_end = |end: Bson| {
            let mut entry = entry("user", user, 1);
            entry.insert("expiredAt", end);
            views(&entry)
        };
        let hour = Duration::from_secs(3600);
        let now = SystemTime::now();
        assert!(with_end(Bson::DateTime((now + hour).into())));
        assert!(with_end(Bson::Null));
        assert!(!with_end(Bson::DateTime((now - hour).into())));
        assert!(!with_end(Bson::String("never".into())));
    }
}
