//! Reading LibreChat's documents as they come, without trusting their shape.
//!
//! A field of another type than LibreChat writes counts as absent, so that no document,
//! however hostile, does more than be skipped.

use mongodb::bson::{DateTime, RawArray, RawBsonRef, RawDocument, oid::ObjectId};

/// Typed look-ups that treat a wrong type, and bytes that are no BSON, as absent.
pub(crate) trait Lenient {
    fn value(&self, key: &str) -> Option<RawBsonRef<'_>>;

    fn text(&self, key: &str) -> Option<&str> {
        self.value(key).and_then(mongodb::bson::RawBsonRef::as_str)
    }

    fn object_id(&self, key: &str) -> Option<ObjectId> {
        self.value(key)
            .and_then(mongodb::bson::RawBsonRef::as_object_id)
    }

    fn date(&self, key: &str) -> Option<DateTime> {
        self.value(key)
            .and_then(mongodb::bson::RawBsonRef::as_datetime)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.value(key).and_then(mongodb::bson::RawBsonRef::as_bool)
    }

    fn document(&self, key: &str) -> Option<&RawDocument> {
        self.value(key)
            .and_then(mongodb::bson::RawBsonRef::as_document)
    }

    fn array(&self, key: &str) -> Option<&RawArray> {
        self.value(key)
            .and_then(mongodb::bson::RawBsonRef::as_array)
    }
}

impl Lenient for RawDocument {
    fn value(&self, key: &str) -> Option<RawBsonRef<'_>> {
        self.get(key).ok().flatten()
    }
}
